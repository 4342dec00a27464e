/**
 * What runs beside requests, in the order of starting: views are filled before they serve, then the log is announced, then services react to what was
 * announced and do their jobs. Stopping goes the other way.
 */
const STAGES = ['views', 'announcements', 'work'] as const;

export interface BackgroundComponent {
  readonly name: string;
  readonly stage: (typeof STAGES)[number];
  /** Resolves when the next stage may begin. */
  start(): Promise<void>;
  /** Finishes what is in flight. */
  stop(): Promise<void>;
}

/** Services add their parts while the application is put together; the main program starts and stops them. */
export class Lifecycle {
  private readonly components: BackgroundComponent[] = [];
  private readonly running: BackgroundComponent[] = [];

  add(component: BackgroundComponent): void {
    this.components.push(component);
  }

  /** `only`: a program that answers nobody fills the views and leaves it at that. */
  async start(only: readonly BackgroundComponent['stage'][] = STAGES): Promise<void> {
    for (const stage of STAGES.filter((each) => only.includes(each)))
      await Promise.all(
        this.components
          .filter((component) => component.stage === stage)
          .map(async (component) => {
            this.running.push(component);
            await component.start();
          }),
      );
  }

  /** Stops what was started, last stage first; a part that fails to stop does not keep the others from stopping. */
  async stop(): Promise<void> {
    const failures: unknown[] = [];
    for (const stage of [...STAGES].reverse()) {
      const stopping = this.running.filter((component) => component.stage === stage).map((component) => component.stop());
      for (const result of await Promise.allSettled(stopping)) if (result.status === 'rejected') failures.push(result.reason);
    }
    this.running.length = 0;
    if (failures.length > 0) throw new AggregateError(failures, 'Some parts did not stop cleanly.');
  }
}
