import { newCommandId } from '#libs/platform/src/ids';
import { momentOf } from './records.ts';

describe('a command', () => {
  const asked = Date.parse('2026-01-15T12:00:00.000Z');
  const id = newCommandId(asked);

  it('happens when it was asked for', () => {
    for (const late of [0, 1, 49_999]) expect(momentOf(id, asked + late)).toBe(asked);
  });

  it('happens now, where it is repeated much later, or is ahead of the clock here', () => {
    for (const now of [asked + 50_000, asked + 86_400_000, asked - 1, asked - 5_000]) expect(momentOf(id, now)).toBe(now);
  });
});
