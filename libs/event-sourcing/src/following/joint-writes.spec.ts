import { setTimeout as pause } from 'node:timers/promises';
import { placeOf, ReadModels, type Table, type TableWrite } from '#libs/read-models/src/read-models';
import { JointWrites } from './joint-writes.ts';

/** Remembers what it was given at once. */
class GivenReadModels extends ReadModels {
  readonly given: (readonly string[])[] = [];
  refused = '';

  override async writeAll(given: readonly TableWrite[]): Promise<readonly PromiseSettledResult<void>[]> {
    this.given.push(given.map(({ checkpoint }) => placeOf(checkpoint!).position));
    return given.map(({ checkpoint }) =>
      checkpoint === this.refused ? { status: 'rejected', reason: new Error('refused') } : { status: 'fulfilled', value: undefined },
    );
  }

  readonly table = (): never => {
    throw new Error('Nobody opens one here.');
  };
  readonly drop = this.table;
}

describe('what followers of a process write', () => {
  const table = {} as Table<never>;
  let readModels: GivenReadModels;
  let writes: JointWrites;
  beforeEach(() => {
    readModels = new GivenReadModels();
    writes = new JointWrites(readModels);
  });

  it('goes to the store at once when the last has come who said that they would', async () => {
    const [first, second, third] = [writes.reserve(), writes.reserve(), writes.reserve()];
    const written = [first.write(table, [], '1'), second.write(table, [], '2')];
    expect(readModels.given).toEqual([]);
    third.release();
    await Promise.all(written);
    expect(readModels.given).toEqual([['1', '2']]);
  });

  it('waits for nobody who takes long', async () => {
    const [slow, quick] = [writes.reserve(), writes.reserve()];
    await quick.write(table, [], '1');
    await slow.write(table, [], '2');
    expect(readModels.given).toEqual([['1'], ['2']]);
  });

  it('goes together where it comes in one turn, whoever said so or not', async () => {
    await Promise.all(['1', '2', '3'].map((checkpoint) => writes.write(table, [], checkpoint)));
    expect(readModels.given).toEqual([['1', '2', '3']]);
    await pause(5);
    expect(readModels.given).toHaveLength(1);
  });

  it('is refused to whom it is refused, and to nobody else', async () => {
    readModels.refused = '2';
    const outcomes = await Promise.allSettled(['1', '2', '3'].map((checkpoint) => writes.write(table, [], checkpoint)));
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  });
});
