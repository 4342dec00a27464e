const SEPARATOR = '.';
const IDENTITY = 'installation';

/** How the streams of an installation are called in EventStoreDB, where other installations and other products may have theirs. Names of installations have no `.`. */
export class StreamNames {
  /** The stream that says which log it is. It is none of the log's own. */
  readonly identity: string;
  private readonly prefix: string;

  constructor(readonly installation: string) {
    this.prefix = installation + SEPARATOR;
    this.identity = this.prefix + IDENTITY;
  }

  /** @throws RangeError for a name that no stream of the log may have */
  stored(stream: string): string {
    if (stream === IDENTITY) throw new RangeError(`'${stream}' is no stream of the log.`);
    return this.prefix + stream;
  }

  /** The stream of the log that is stored under a name; null where none of ours is. */
  own(stored: string): string | null {
    return stored.startsWith(this.prefix) && stored !== this.identity ? stored.slice(this.prefix.length) : null;
  }
}
