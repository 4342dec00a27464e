import { type Position, START } from '../log/event-store.ts';
import type { Damage, ExaminedPage, LogDamage } from '../log/log-damage.ts';
import { fingerprintOf, isAmong, KnownVersions, type SomeStreams } from './known-versions.ts';
import type { StreamNames } from './stream-names.ts';
import { allBackwards, allForwards, type LogEvent, type ReadRequest } from './wire.ts';

/** Events that are asked for at once; fewer where they are large. An event at the position itself comes again, so one alone would never end. */
const PAGE = 500;
const SMALLEST_PAGE = 16;
const PAGE_BYTES = 4 * 1024 * 1024;

interface Needs {
  readonly names: StreamNames;
  /** Answers up to `count` events of `$all`. */
  readonly search: (request: ReadRequest, count: number) => Promise<readonly LogEvent[]>;
  readonly damage: Pick<LogDamage, 'list' | 'inspect'>;
  /** Streams whose versions are known at once, and a third more. */
  readonly slots?: number;
}

/**
 * The log from its beginning to its end as of the call, as it lies in `$all`, where what metadata hide is still there. A stream in which something is not as it was written, or
 * whose versions are not the next ones, is looked at itself; so are those that were damaged so far, which may have been repaired. Memory does not grow with the log: where
 * there are more streams than versions can be remembered of, half of them are left to another reading, in which only versions are looked at.
 */
export async function* examined({ names, search, damage, slots }: Needs): AsyncIterable<ExaminedPage> {
  const [newest] = await search(allBackwards(null, 1), 1);
  const end = newest?.position ?? START;
  const inspected = new Set<string>();
  const inspect = async (streams: Iterable<string>): Promise<readonly Damage[]> => {
    const found: Damage[] = [];
    for (const stream of streams) {
      if (inspected.has(stream)) continue;
      inspected.add(stream);
      found.push(...(await damage.inspect(stream)));
    }
    return found;
  };
  const left: SomeStreams[] = [{ mask: 0, bits: 0 }];
  for (let readings = 0; left.length > 0; readings++) {
    let streams = left.pop()!;
    let versions = new KnownVersions(slots);
    for await (const events of pagesOf({ names, search }, end)) {
      const suspects = new Set<string>();
      for (const event of events) {
        const stream = event.stream ?? event.describes;
        if (stream === null) continue;
        if (event.damage !== null) suspects.add(stream);
        const fingerprint = event.describes === null && Number.isSafeInteger(event.version) ? fingerprintOf(stream) : null;
        if (fingerprint === null || !isAmong(streams, fingerprint)) continue;
        if (!versions.meets(fingerprint, event.version)) suspects.add(stream);
        if (!versions.isFull) continue;
        const bit = streams.mask + 1;
        left.push({ mask: streams.mask + bit, bits: streams.bits + bit });
        streams = { mask: streams.mask + bit, bits: streams.bits };
        versions = versions.only(streams);
      }
      const position = events.at(-1)?.position ?? START;
      const portion = (readings + commitOf(position) / commitOf(end)) / (readings + 1 + left.length);
      const records = readings === 0 ? events.flatMap(({ record }) => record ?? []) : [];
      yield { records, damages: placed(await inspect(suspects), events), position, portion };
    }
  }
  yield { records: [], damages: await inspect(damage.list().map(({ stream }) => stream)), position: end, portion: 1 };
}

/** What a stream does not tell of its damage: where in the log that lies which did it. */
function placed(damages: readonly Damage[], events: readonly LogEvent[]): readonly Damage[] {
  const witnesses = events.flatMap(({ damage }) => damage ?? []);
  const witnessOf = ({ stream, cause }: Damage): Damage | undefined => witnesses.find((each) => each.stream === stream && each.cause === cause);
  return damages.map((damage) => (damage.position === null ? (witnessOf(damage) ?? damage) : damage));
}

/** What was stored up to a position in the streams of an installation and in their metadata. */
async function* pagesOf({ names, search }: Pick<Needs, 'names' | 'search'>, end: Position): AsyncIterable<readonly LogEvent[]> {
  for (let [from, count] = [START, PAGE]; from < end;) {
    const events = await search(allForwards(from, count, names.prefix, names.metadataPrefix), count);
    const next = events.filter(({ position }) => position > from && position <= end);
    if (next.length > 0) yield next;
    if (events.length < count) return;
    from = events.at(-1)!.position;
    const bytes = events.reduce((sum, event) => sum + event.bytes, 0) / events.length;
    count = Math.min(PAGE, Math.max(SMALLEST_PAGE, Math.floor(PAGE_BYTES / Math.max(bytes, 1))));
  }
}

/** How many bytes of the server's log lie before it. */
function commitOf(position: Position): number {
  return Number(position.split('-')[0]);
}
