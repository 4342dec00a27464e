import { setTimeout as pause } from 'node:timers/promises';
import { SystemClock } from '#libs/platform/src/clock';
import { SettableClock } from '#libs/testing/src/settable-clock';
import { FaultyLog } from '#libs/testing/src/faulty-log';
import { until } from '#libs/testing/src/until';
import { START, type Position } from '../log/event-store.ts';
import { LogReader } from './log-reader.ts';
import { type Awaited, PositionGate } from './position-gate.ts';

/** What another process brings along. */
class Elsewhere implements Awaited {
  readonly isElsewhere = true;
  stored: Position = START;
  readings = 0;
  mostAtOnce = 0;
  failure: Error | null = null;
  private seen: Position = START;
  private underWay = 0;

  hasSeen(position: Position): boolean {
    return this.seen >= position;
  }

  async look(): Promise<void> {
    this.readings += 1;
    this.mostAtOnce = Math.max(this.mostAtOnce, ++this.underWay);
    await pause(2);
    this.underWay -= 1;
    if (this.failure !== null) throw this.failure;
    this.seen = this.stored;
  }
}

/** What this process brings along. */
class Here implements Awaited {
  readonly isElsewhere = false;
  readonly hurried: Position[] = [];
  position: Position = START;
  isHalted = false;

  hasSeen(position: Position): boolean {
    return this.isHalted || this.position >= position;
  }

  hurry(position: Position): void {
    this.hurried.push(position);
  }
}

describe('whoever waits for a position', () => {
  const clock = new SystemClock();
  let log: FaultyLog;
  let heads: number;
  let gate: PositionGate;
  let here: Here;
  let elsewhere: Elsewhere;
  beforeEach(() => {
    log = new FaultyLog();
    heads = 0;
    const head = log.head.bind(log);
    log.head = () => {
      heads += 1;
      return head();
    };
    for (let count = 0; count < 9; count++) log.record();
    gate = new PositionGate(new LogReader(log, clock), clock);
    [here, elsewhere] = [new Here(), new Elsewhere()];
  });

  const at = (number: number): Position => String(number).padStart(16, '0');
  const soon = (): number => clock.now() + 5_000;
  /** Who waits, in the order in which they are told. */
  const waiters = (positions: readonly Position[], awaited: Awaited): { readonly told: Position[]; readonly all: Promise<unknown> } => {
    const told: Position[] = [];
    return { told, all: Promise.all(positions.map((each) => gate.reached(each, soon(), [awaited]).then(() => told.push(each)))) };
  };

  it('is told when all that it waits for are there, which are told that somebody waits', async () => {
    const second = new Here();
    let isTold = false;
    const told = gate.reached(at(3), soon(), [here, second]).then(() => (isTold = true));
    here.position = at(4);
    gate.moved();
    await pause(0);
    expect([isTold, here.hurried, second.hurried]).toEqual([false, [at(3)], [at(3)]]);
    second.position = at(3);
    gate.moved();
    await told;
  });

  it('looks once for each who waits whenever anything moves, however many things each waits for', async () => {
    let looks = 0;
    const awaited = Array.from({ length: 30 }, () => {
      const one = new Here();
      const hasSeen = one.hasSeen.bind(one);
      one.hasSeen = (position) => {
        looks += 1;
        return hasSeen(position);
      };
      return one;
    });
    const told = gate.reached(at(1), soon(), awaited);
    looks = 0;
    for (const one of awaited) {
      one.position = at(1);
      gate.moved();
    }
    await told;
    expect(looks).toBeLessThan(4 * awaited.length);
  });

  it('says why the end of the log is not known as a refusal, whatever its engine says', async () => {
    log.head = () => Promise.reject(new Error('a driver broke off'));
    await expect(gate.headReached(soon(), [here])).rejects.toMatchObject({ code: 'service_unavailable', cause: { message: 'a driver broke off' } });
  });

  it('waits for nothing that is halted, nor for what is there already', async () => {
    here.isHalted = true;
    await gate.reached(at(3), clock.now() - 1, [here]);
    expect(here.hurried).toEqual([]);
    const second = new Here();
    const told = gate.reached(at(3), soon(), [second]);
    second.isHalted = true;
    gate.moved();
    await told;
  });

  it('has what others bring along read once for all who wait, and is told as soon as it has waited long enough', async () => {
    const early = waiters(Array.from<Position>({ length: 8 }).fill(at(1)), elsewhere);
    const late = waiters([at(2), at(3)], elsewhere);
    await until(() => elsewhere.readings > 2);
    expect([early.told, late.told]).toEqual([[], []]);
    elsewhere.stored = at(2);
    await early.all;
    await until(() => late.told.length === 1);
    expect(late.told).toEqual([at(2)]);
    elsewhere.stored = at(3);
    await late.all;
    expect(elsewhere.mostAtOnce).toBe(1);
  });

  it('costs no reading once nobody waits, and while what is read cannot be, it waits', async () => {
    elsewhere.failure = new Error('away');
    const { told, all } = waiters([at(1)], elsewhere);
    await until(() => elsewhere.readings > 2);
    elsewhere.stored = at(1);
    expect(told).toEqual([]);
    elsewhere.failure = null;
    await all;
    await pause(50);
    const before = elsewhere.readings;
    await pause(50);
    expect(elsewhere.readings).toBe(before);
    elsewhere.stored = at(2);
    await gate.reached(at(2), soon(), [elsewhere]);
    expect(elsewhere.readings).toBeGreaterThan(before);
  });

  it('is refused at its own deadline, without a timer of its own', async () => {
    const timers: number[] = [];
    const { setTimeout: real } = globalThis;
    globalThis.setTimeout = ((work: () => void, milliseconds: number) => {
      timers.push(milliseconds);
      return real(work, milliseconds);
    }) as typeof setTimeout;
    const began = performance.now();
    const refused: number[] = [];
    let all: Promise<unknown>;
    try {
      const deadlines = [300, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40];
      all = Promise.all(
        deadlines.map((milliseconds) =>
          gate
            .reached(at(9), clock.now() + milliseconds, [here])
            .catch(({ code }: { readonly code: string }) => refused.push(code === 'service_unavailable' ? milliseconds : -1)),
        ),
      );
      expect(timers.length).toBe(2);
    } finally {
      globalThis.setTimeout = real;
    }
    await until(() => refused.length > 0);
    expect(refused).not.toContain(300);
    await all;
    expect(refused.at(-1)).toBe(300);
    expect(performance.now() - began).toBeGreaterThan(290);
  });

  it('asks for the end of the log once for all who come meanwhile', async () => {
    here.position = at(9);
    await Promise.all(Array.from({ length: 100 }, () => gate.headReached(soon(), [here])));
    expect(heads).toBeLessThanOrEqual(2);
  });

  it('is not told by an end of the log that was asked for in the moment in which it came: what it waits for may have been recorded after that', async () => {
    const stands = new SettableClock();
    gate = new PositionGate(new LogReader(log, stands), stands);
    let isTold = false;
    const told = gate.reached(at(9), stands.now() + 5_000, [here]).then(() => (isTold = true));
    gate.headIs(at(8), stands.now());
    await pause(0);
    expect(isTold).toBe(false);
    here.position = at(9);
    gate.moved();
    await told;
  });

  it('waits for no position that the log does not have any more, since it was put back to an earlier state', async () => {
    const told = gate.reached(at(9), clock.now() + 60_000, [here]);
    log.restore(5);
    await told;
    await expect(gate.reached(at(5), clock.now() + 1_500, [here])).rejects.toMatchObject({ code: 'service_unavailable' });
  });
});
