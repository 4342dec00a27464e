import { Injectable } from '@nestjs/common';
import type { Owner } from '#libs/contracts/src/operation';
import { MessageBus, type Message } from '#libs/messaging/src/message-bus';
import { Clock } from '#libs/platform/src/clock';
import { newUlid } from '#libs/platform/src/ids';
import { Log } from '#libs/platform/src/log';
import { Metrics } from '#libs/platform/src/metrics';
import { SYSTEM_ENVIRONMENT } from '#libs/platform/src/request-context';
import { Lifecycle } from '#libs/platform/src/runtime/lifecycle';
import { LeasedWork } from '#libs/read-models/src/leased-work';
import { ReadModels, type Table } from '#libs/read-models/src/read-models';
import { ShortLived } from '#libs/read-models/src/short-lived';
import { EventStore, type RecordedEvent } from './event-store.ts';
import { isProtocol } from './log.repository.ts';
import { categoryOf } from './naming.ts';
import { publicEventsOf } from './public-events.ts';

/** A position that passes only what is another service's is stored this often: the next start reads no further back. */
const QUIET_CHECKPOINT_MS = 1_000;

/** Which part of the log a service announces: the streams of these categories. */
export interface Forwarded {
  readonly service: Owner;
  readonly categories: readonly string[];
}

/** Where the public events of a service go; prefixes of it are what a cluster grants rights on. */
function topicOf(environment: string, service: Owner): string {
  return `gatehouse.${environment}.${service}`;
}

/** Copies what was recorded to the message bus: in order, at least once, from where the last run of any process left it. */
@Injectable()
export class Forwarders {
  private readonly services: Owner[] = [];
  /** When the oldest event was recorded that is on its way; absent: none is. */
  private readonly behindSince = new Map<Owner, number>();
  private readonly forwarded;
  private readonly skipped;

  constructor(
    private readonly events: EventStore,
    private readonly bus: MessageBus,
    private readonly readModels: ReadModels,
    private readonly leases: ShortLived,
    private readonly lifecycle: Lifecycle,
    private readonly clock: Clock,
    private readonly log: Log,
    metrics: Metrics,
  ) {
    this.forwarded = metrics.counter({ name: 'forwarder_messages_total', help: 'Messages that were copied from the log to the bus.', labels: ['service'] });
    this.skipped = metrics.counter({ name: 'forwarder_skipped_total', help: 'Records that could not be announced.', labels: ['service'] });
    metrics.gauge({
      name: 'forwarder_lag_seconds',
      help: 'Age of the oldest event that is on its way to the bus.',
      labels: ['service'],
      collect: (gauge) => {
        for (const service of this.services)
          gauge.set({ service }, this.behindSince.has(service) ? (this.clock.now() - this.behindSince.get(service)!) / 1000 : 0);
      },
    });
  }

  /** Before the process starts its parts. */
  add(forwarded: Forwarded): void {
    const { leases, log } = this;
    const table = this.readModels.table<never>({ name: `forwarder-${forwarded.service}`, indexes: [], rebuildable: false });
    this.services.push(forwarded.service);
    this.lifecycle.add(
      new LeasedWork(`forwarder.${forwarded.service}`, (signal) => this.follow(forwarded, table, signal), { leases, log, holder: newUlid(this.clock.now()) }),
    );
  }

  private async follow({ service, categories }: Forwarded, table: Table<never>, signal: AbortSignal): Promise<void> {
    const owned = new Set(categories);
    let storedAt = 0;
    for await (const batch of this.events.subscribe(await table.checkpoint(), signal)) {
      const records = batch.filter(({ stream, type, meta }) => owned.has(categoryOf(stream)) && !isProtocol(type) && meta.environment !== SYSTEM_ENVIRONMENT);
      if (records.length > 0) {
        this.behindSince.set(service, records[0]!.meta.at);
        await this.publish(service, records);
      } else if (this.clock.now() - storedAt < QUIET_CHECKPOINT_MS) continue;
      // What was cut short is published again: the bus has it before the checkpoint does.
      await table.write([], batch.at(-1)!.position);
      storedAt = this.clock.now();
      this.behindSince.delete(service);
    }
  }

  private async publish(service: Owner, records: readonly RecordedEvent[]): Promise<void> {
    const topics = new Map<string, Message[]>();
    for (const record of records) {
      const { topic, messages } = this.announced(service, record);
      const known = topics.get(topic);
      if (known === undefined) topics.set(topic, [...messages]);
      else known.push(...messages);
    }
    await Promise.all([...topics].map(([topic, messages]) => (messages.length > 0 ? this.bus.publish(topic, messages) : Promise.resolve())));
    for (const messages of topics.values()) this.forwarded.inc({ service }, messages.length);
  }

  private announced(service: Owner, record: RecordedEvent): { readonly topic: string; readonly messages: readonly Message[] } {
    const topic = topicOf(record.meta.environment, service);
    if (record.public.length === 0)
      return { topic: `${topic}.domain`, messages: [message(service, record, { id: record.id, type: record.type, text: domainText(record) })] };
    try {
      return { topic, messages: publicEventsOf(record).map(({ id, name, text }) => message(service, record, { id, type: name, text })) };
    } catch (error) {
      // One record that cannot be told must not silence all that follow.
      this.skipped.inc({ service });
      this.log.error('A record cannot be announced and is passed over.', {
        service,
        stream: record.stream,
        position: record.position,
        type: record.type,
        error,
      });
      return { topic, messages: [] };
    }
  }
}

/** CloudEvents 1.0 in binary mode. */
function message(
  service: Owner,
  { stream, position, meta }: RecordedEvent,
  { id, type, text }: { readonly id: string; readonly type: string; readonly text: string },
): Message {
  const headers = {
    'content-type': 'application/json',
    ce_specversion: '1.0',
    ce_id: id,
    ce_type: type,
    ce_source: `/environments/${meta.environment}/${service}`,
    ce_time: new Date(meta.at).toISOString(),
    position,
  };
  return { key: meta.organization ?? stream, value: text, headers };
}

/** What services tell each other beside the public events; secrets in it are sealed. */
function domainText({ id, stream, version, type, shape, data, meta }: RecordedEvent): string {
  const { environment, organization, actor, at } = meta;
  return JSON.stringify({
    id,
    type,
    shape,
    stream,
    version,
    environment,
    ...(organization !== undefined && { organization }),
    actor,
    data,
    created_at: new Date(at).toISOString(),
  });
}
