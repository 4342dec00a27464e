import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import { within } from './deadline.ts';

/** From a tenth of a millisecond to ten seconds. */
const SECONDS = [0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** A metric that takes longer is left out this time: whoever asks for all of them waits a second or ten. */
const COLLECTED_WITHIN = 500;

interface MetricOptions<Label extends string> {
  /** Without the prefix `gatehouse_`. */
  readonly name: string;
  readonly help: string;
  /** Their values come from closed sets (operations, views, outcomes), never ids: every value is a time series for ever. */
  readonly labels?: readonly Label[];
}

/** The numbers that `/metrics` shows. One registry per process, so that two suites in one test do not share theirs. */
export class Metrics {
  private readonly registry = new Registry();

  /** `collect` tells how many there were since the start, when it is asked for; absent: whoever holds it counts. */
  counter<Label extends string = never>({
    name,
    help,
    labels = [],
    collect,
  }: MetricOptions<Label> & { readonly collect?: () => readonly (readonly [labels: Readonly<Record<Label, string>>, count: number])[] }): Counter<Label> {
    return new Counter({
      name: `gatehouse_${name}`,
      help,
      labelNames: [...labels],
      registers: [this.registry],
      ...(collect && {
        collect(this: Counter<Label>) {
          this.reset();
          for (const [of, count] of collect()) this.inc({ ...of }, count);
        },
      }),
    });
  }

  /**
   * `collect` sets the gauge when it is asked for; absent: whoever holds it does. A gauge that cannot be collected shows nothing, and hides no other: an
   * engine that is away is when somebody looks.
   */
  gauge<Label extends string = never>({
    name,
    help,
    labels = [],
    collect,
  }: MetricOptions<Label> & { readonly collect?: (gauge: Gauge<Label>) => void | Promise<void> }): Gauge<Label> {
    return new Gauge({
      name: `gatehouse_${name}`,
      help,
      labelNames: [...labels],
      registers: [this.registry],
      ...(collect && {
        async collect(this: Gauge<Label>) {
          try {
            const collected = collect(this);
            if (collected !== undefined) await within(collected, COLLECTED_WITHIN, () => new Error(`${name} takes too long.`));
          } catch {
            this.reset();
            // One without labels is reset to 0, which would be a claim.
            if (labels.length === 0) this.remove();
          }
        },
      }),
    });
  }

  /** Durations in seconds. */
  histogram<Label extends string = never>({ name, help, labels = [] }: MetricOptions<Label>): Histogram<Label> {
    return new Histogram({ name: `gatehouse_${name}`, help, labelNames: [...labels], buckets: SECONDS, registers: [this.registry] });
  }

  /** Memory, CPU, event loop and garbage collection of this process; observes the process, so only a main program turns it on. */
  observeProcess(): void {
    collectDefaultMetrics({ register: this.registry });
  }

  /** In the Prometheus text format. */
  async text(): Promise<string> {
    return this.registry.metrics();
  }

  readonly contentType = Registry.PROMETHEUS_CONTENT_TYPE;
}
