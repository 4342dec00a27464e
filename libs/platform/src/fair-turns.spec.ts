import { setImmediate as endOfTurn } from 'node:timers/promises';
import { FairTurns } from './fair-turns.ts';

describe('fair turns', () => {
  it('have each key begin so much in a turn, in its order, whatever others ask for', async () => {
    const turns = new FairTurns(2);
    const begun: string[] = [];
    const work = async (key: string, name: string): Promise<void> => {
      await turns.take(key);
      begun.push(name);
    };
    const all = [1, 2, 3, 4, 5].map((number) => work('busy', `busy ${number}`));
    all.push(work('other', 'other 1'));
    await Promise.resolve();
    expect(begun).toEqual(['busy 1', 'busy 2', 'other 1']);
    await endOfTurn();
    await Promise.resolve();
    expect(begun.slice(3)).toEqual(['busy 3', 'busy 4']);
    // What comes later stands behind.
    all.push(work('busy', 'busy 6'), work('other', 'other 2'));
    await Promise.all(all);
    expect(begun.slice(5)).toEqual(['other 2', 'busy 5', 'busy 6']);
  });

  it('wait for nobody where they are alone', async () => {
    const turns = new FairTurns(1);
    for (let turn = 0; turn < 3; turn++) {
      expect(turns.take('alone')).toBeNull();
      await endOfTurn();
      await endOfTurn();
    }
  });
});
