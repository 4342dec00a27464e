const SEPARATOR = '.';
const IDENTITY = 'installation';
const DAMAGE = 'damage';
/** Of the streams that hold what the server is told of others. */
const METADATA = '$$';

/** How the streams of an installation are called in EventStoreDB, where other installations and other products may have theirs. Names of installations have no `.`. */
export class StreamNames {
  /** The stream that says which log it is. It is none of the log's own. */
  readonly identity: string;
  /** The stream that says what of the log is damaged. It is none of the log's own. */
  readonly damage: string;
  /** What the names of all of them begin with, and nobody else's. */
  readonly prefix: string;

  /** What the names of their metadata begin with. */
  readonly metadataPrefix: string;

  constructor(readonly installation: string) {
    this.prefix = installation + SEPARATOR;
    this.metadataPrefix = METADATA + this.prefix;
    this.identity = this.prefix + IDENTITY;
    this.damage = this.prefix + DAMAGE;
  }

  /** @throws RangeError for a name that no stream of the log may have */
  stored(stream: string): string {
    if (stream === IDENTITY || stream === DAMAGE) throw new RangeError(`'${stream}' is no stream of the log.`);
    return this.prefix + stream;
  }

  /** The stream of the log that is stored under a name; null where none of ours is. */
  own(stored: string): string | null {
    return stored.startsWith(this.prefix) && stored !== this.identity && stored !== this.damage ? stored.slice(this.prefix.length) : null;
  }

  /** Where the metadata of a stream of the log are stored. */
  metadata(stream: string): string {
    return METADATA + this.stored(stream);
  }

  /** The stream of the log whose metadata are stored under a name; null where none of ours is. */
  described(stored: string): string | null {
    return stored.startsWith(METADATA) ? this.own(stored.slice(METADATA.length)) : null;
  }
}
