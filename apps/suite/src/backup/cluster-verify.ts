import { trailKeyOf } from '#apps/audit-logs/src/sealing/trail-keys';
import { WITH_SECRETS } from '#libs/contracts/src/sealed';
import { ErasureCheck } from '#libs/event-sourcing/src/erasure/erasure-check';
import { START } from '#libs/event-sourcing/src/log/event-store';
import { type Damage, describeDamage } from '#libs/event-sourcing/src/log/log-damage';
import { KeyCheck } from '#libs/event-sourcing/src/sealing/key-check';
import { markedFieldsOf } from '#libs/event-sourcing/src/sealing/marked-fields';
import { StartRefused } from '#libs/platform/src/start-refused';
import type { Engines } from '#libs/runtime/src/engines';
import { erasuresUnfinished, problemText } from './verify.ts';

/** A log takes minutes or hours. */
const TELL_MS = 10_000;
/** Of one stream; what another program writes may have no end. */
const NAMED = 10;
/** Lines. Whoever has so many restores a backup, or begins at the first. */
const ENOUGH = 1_000;

/**
 * Reads the whole log of a cluster, names each damage of it, the first record of each key that is missing, and each erasure that is not carried out.
 * @throws StartRefused with the exit code of a log that is not whole, or of erasures that are left
 */
export async function verifyCluster({ damage, keys }: Pick<Engines, 'damage' | 'keys'>, tell: (line: string) => void): Promise<void> {
  const check = new KeyCheck({ keys, marked: markedFieldsOf(WITH_SECRETS), alsoNeeded: trailKeyOf });
  const erasures = new ErasureCheck(keys);
  const streams = new Set<string>();
  let [records, problems, head, told] = [0, 0, START, Date.now()];
  for await (const page of damage.examine()) {
    const missing = await check.problemsIn(page.records);
    for (const [stream, damages] of byStream(page.damages)) {
      streams.add(stream);
      tell(`Damaged: ${namedText(damages)}`);
    }
    for (const problem of missing) tell(problemText(problem));
    await erasures.look(page.records);
    records += page.records.length;
    problems += missing.length;
    head = page.records.at(-1)?.position ?? head;
    if (streams.size + problems >= ENOUGH) throw notWhole(streams.size, problems, 'at least ');
    if (Date.now() - told < TELL_MS) continue;
    told = Date.now();
    tell(`${records} records are read, up to position ${page.position}: ${Math.floor(page.portion * 100)} %.`);
  }
  const unfinished = await erasures.unfinished();
  for (const erasure of unfinished.slice(0, ENOUGH)) tell(problemText(erasure));
  if (streams.size + problems > 0) throw notWhole(streams.size, problems);
  if (unfinished.length > 0) throw erasuresUnfinished(unfinished, head);
  tell(`All ${records} records up to position ${head} are good, and every stream has all of its versions. The key of everything sealed is there.`);
}

/** Some of what is wrong with a stream, in a sentence. */
export function namedText(damages: readonly Damage[]): string {
  const named = damages.slice(0, NAMED).map(describeDamage).join('; ');
  return damages.length > NAMED ? `${named}; and ${damages.length - NAMED} more.` : `${named}.`;
}

function byStream(damages: readonly Damage[]): ReadonlyMap<string, readonly Damage[]> {
  const found = new Map<string, Damage[]>();
  for (const damage of damages) {
    const known = found.get(damage.stream);
    if (known === undefined) found.set(damage.stream, [damage]);
    else known.push(damage);
  }
  return found;
}

function notWhole(streams: number, keys: number, atLeast = ''): StartRefused {
  const what = [...(streams > 0 ? [`streams that are damaged: ${atLeast}${streams}`] : []), ...(keys > 0 ? [`keys that are missing: ${atLeast}${keys}`] : [])];
  return new StartRefused(`The log is not whole (${what.join('; ')}). docs/operations.md says what to do.`, 2);
}
