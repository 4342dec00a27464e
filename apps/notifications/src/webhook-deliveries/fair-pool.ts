interface Lane {
  readonly key: string;
  readonly waiting: (() => void)[];
  running: number;
  isReady: boolean;
}

interface Limits {
  /** Of all keys together; asked whenever a job could start. */
  readonly total: () => number;
  readonly perKey: number;
}

/** Runs jobs of many keys beside each other. Keys take turns, so that one with many jobs, or slow ones, does not keep the others waiting. */
export class FairPool {
  private readonly lanes = new Map<string, Lane>();
  private readonly ready: Lane[] = [];
  private running = 0;

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
    while (this.running < this.limits.total()) {
      const lane = this.ready.shift();
      if (lane === undefined) return;
      lane.isReady = false;
      lane.running++;
      this.running++;
      lane.waiting.shift()!();
      this.offer(lane);
    }
  }

  private finished(lane: Lane): void {
    lane.running--;
    this.running--;
    if (lane.running === 0 && lane.waiting.length === 0) this.lanes.delete(lane.key);
    this.offer(lane);
    this.startReady();
  }
}
