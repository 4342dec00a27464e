interface Lane {
  readonly key: string;
  readonly waiting: (() => void)[];
  running: number;
  isReady: boolean;
}

interface Limits {
  /** Of all keys together. */
  readonly total: number;
  readonly perKey: number;
}

/**
 * How many jobs begin in one turn of the event loop. When the process is idle a turn is short, and this is no limit; when it is not, a turn serves many
 * requests of the API, and these few jobs take their small share of it.
 */
const PER_TURN = 6;

/** Runs jobs of many keys beside each other. Keys take turns, so that one with many jobs, or slow ones, does not keep the others waiting. */
export class FairPool {
  private readonly lanes = new Map<string, Lane>();
  private readonly ready: Lane[] = [];
  private running = 0;
  private begunInTurn = 0;
  private nextTurn: NodeJS.Immediate | null = null;

  constructor(private readonly limits: Limits) {}

  run<T>(key: string, job: () => Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const lane = this.laneOf(key);
      lane.waiting.push(() => {
        job()
          .then(resolve, reject)
          .finally(() => this.finished(lane));
      });
      this.offer(lane);
      this.startReady();
    });
  }

  private laneOf(key: string): Lane {
    let lane = this.lanes.get(key);
    if (lane === undefined) this.lanes.set(key, (lane = { key, waiting: [], running: 0, isReady: false }));
    return lane;
  }

  private offer(lane: Lane): void {
    if (lane.isReady || lane.waiting.length === 0 || lane.running >= this.limits.perKey) return;
    lane.isReady = true;
    this.ready.push(lane);
  }

  private startReady(): void {
    while (this.running < this.limits.total && this.ready.length > 0) {
      this.nextTurn ??= setImmediate(() => this.turn());
      if (this.begunInTurn++ >= PER_TURN) return;
      const lane = this.ready.shift()!;
      lane.isReady = false;
      lane.running++;
      this.running++;
      lane.waiting.shift()!();
      this.offer(lane);
    }
  }

  private turn(): void {
    this.nextTurn = null;
    this.begunInTurn = 0;
    this.startReady();
  }

  private finished(lane: Lane): void {
    lane.running--;
    this.running--;
    if (lane.running === 0 && lane.waiting.length === 0) this.lanes.delete(lane.key);
    this.offer(lane);
    this.startReady();
  }
}
