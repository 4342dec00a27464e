/**
 * Loaded before a program (`NODE_OPTIONS=--import`), whose process then ends by `kill -9` right before or behind a step of a full listing: whichever the file says that `DIES_AT`
 * names.
 */
import { dyingAt } from '#libs/testing/src/dying';
import { DirectoryRuns, type StoredRun } from '../listings/directory-runs.ts';
import { ListingApplication, type RunningRun } from '../listings/listing-application.ts';
import { ListingComparison } from '../listings/listing-comparison.ts';
import { ListingWork } from '../listings/listing-work.ts';

/** In the midst of a pass: at the call of this number of a run, and at whichever come in the same moment. */
function isNth(count: number): (given: readonly unknown[]) => boolean {
  const calls = new Map<string, number>();
  return (given) => {
    const { id } = given.map(runOf).find((each) => each !== null)!;
    const call = (calls.get(id) ?? 0) + 1;
    calls.set(id, call);
    return call === count;
  };
}

function runOf(given: unknown): StoredRun | null {
  if (typeof given !== 'object' || given === null) return null;
  return 'fence' in given ? (given as StoredRun) : 'run' in given ? (given as RunningRun).run : null;
}

const saves =
  (isMeant: (run: StoredRun) => boolean) =>
  ([run]: readonly unknown[]): boolean =>
    isMeant(run as StoredRun);

dyingAt(DirectoryRuns.prototype, 'begin', 'the run is queued');
dyingAt(DirectoryRuns.prototype, 'take', 'the run is taken');
dyingAt(ListingComparison.prototype, 'usersByKey', 'a part is compared', isNth(2));
dyingAt(ListingComparison.prototype, 'compareGroups', 'groups are compared');
dyingAt(ListingWork.prototype, 'link', 'the directory is linked');
dyingAt(
  DirectoryRuns.prototype,
  'save',
  'the comparison is accepted',
  saves(({ phase, checkpoint }) => phase === 'applying' && checkpoint?.step === 'remove_groups' && checkpoint.after === null),
);
dyingAt(ListingApplication.prototype, 'removeGroup', 'a group goes', isNth(3));
dyingAt(ListingApplication.prototype, 'removeUser', 'a person goes', isNth(150));
dyingAt(ListingApplication.prototype, 'applyUser', 'a person comes', isNth(100));
dyingAt(ListingApplication.prototype, 'applyUser', 'the last person comes', isNth(190));
dyingAt(ListingApplication.prototype, 'applyGroup', 'a group comes', isNth(2));
dyingAt(
  DirectoryRuns.prototype,
  'save',
  'the end is stored',
  saves(({ phase }) => phase === 'completed'),
);
dyingAt(DirectoryRuns.prototype, 'leave', 'the run is left');
