import { KafkaMessageBus } from '#libs/messaging/src/kafka.message-bus';
import type { Message } from '#libs/messaging/src/message-bus';
import type { Log, LogFields } from '#libs/platform/src/log';

type Options = Parameters<typeof KafkaMessageBus.connect>[0];

/** Remembers every line. */
export class LinesLog implements Log {
  readonly lines: string[] = [];

  debug = (sentence: string, fields: LogFields = {}): void => this.add(sentence, fields);
  info = (sentence: string, fields: LogFields = {}): void => this.add(sentence, fields);
  warn = (sentence: string, fields: LogFields = {}): void => this.add(sentence, fields);
  error = (sentence: string, fields: LogFields = {}): void => this.add(sentence, fields);

  private add(sentence: string, fields: LogFields): void {
    this.lines.push(`${sentence} ${JSON.stringify(fields)}`);
  }
}

export async function givenKafkaBus(brokers: string, options: Partial<Options> = {}): Promise<KafkaMessageBus> {
  return KafkaMessageBus.connect({
    brokers: brokers.split(','),
    installation: 'gatehouse',
    tls: null,
    sasl: null,
    partitions: 4,
    replication: 1,
    retentionMs: 3_600_000,
    clientId: 'spec',
    log: new LinesLog(),
    ...options,
  });
}

export function message(key: string, value: unknown): Message {
  return { key, value: JSON.stringify(value), headers: { ce_id: `${key}-${String(value)}` } };
}
