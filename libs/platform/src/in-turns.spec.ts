import { setImmediate as endOfTurn } from 'node:timers/promises';
import { inTurns } from './in-turns.ts';

describe('work in turns', () => {
  it('is done so much at a time, and answered in its order', async () => {
    let [running, most] = [0, 0];
    const doubled = await inTurns([5, 1, 4, 2, 3], 2, async (turns) => {
      most = Math.max(most, ++running);
      for (let turn = 0; turn < turns; turn++) await endOfTurn();
      running--;
      return turns * 2;
    });
    expect([doubled, most]).toEqual([[10, 2, 8, 4, 6], 2]);
  });

  it('has ended where it fails, and nothing more is begun', async () => {
    const ended: number[] = [];
    const work = async (number: number): Promise<void> => {
      await endOfTurn();
      if (number === 1) throw new Error('one');
      for (let turn = 0; turn < 3; turn++) await endOfTurn();
      ended.push(number);
    };
    await expect(inTurns([0, 1, 2, 3], 2, work)).rejects.toThrow('one');
    for (let turn = 0; turn < 10; turn++) await endOfTurn();
    expect(ended).toEqual([0]);
  });
});
