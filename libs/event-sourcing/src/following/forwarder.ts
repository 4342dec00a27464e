import { Injectable } from '@nestjs/common';
import type { ServiceName } from '#libs/contracts/src/operation';
import { MessageBus, type Message } from '#libs/messaging/src/message-bus';
import { allDone } from '#libs/platform/src/all-done';
import { isUnavailable } from '#libs/platform/src/domain-error';
import { Log } from '#libs/platform/src/log';
import { Metrics } from '#libs/platform/src/metrics';
import { SYSTEM_ENVIRONMENT } from '#libs/platform/src/request-context';
import { ReadModels, type TableDefinition } from '#libs/read-models/src/read-models';
import type { RecordedEvent } from '../log/event-store.ts';
import { categoryOf } from '../log/naming.ts';
import { isProtocol } from '../log/protocol.ts';
import { without } from '../sealing/sealed-paths.ts';
import { LeasedFollowers } from './leased-followers.ts';
import { announcesLater, publicEventsOf } from './public-events.ts';

/** Which part of the log a service announces: the streams of these categories. */
export interface Forwarded {
  readonly service: ServiceName;
  readonly categories: readonly string[];
}

/** Where it is stored how far the events of a service are announced. */
export function checkpointsOf(service: ServiceName): TableDefinition<never> {
  return { name: `forwarder-${service}`, indexes: [], rebuildable: false };
}

/** Where the public events of a service go. */
function topicOf(environment: string, service: ServiceName): string {
  return `${environment}.${service}`;
}

/** Copies what was recorded to the message bus: in order, at least once, from where the last run of any process left it. */
@Injectable()
export class Forwarders {
  private readonly forwarded;
  private readonly skipped;

  constructor(
    private readonly followers: LeasedFollowers,
    private readonly readModels: ReadModels,
    private readonly bus: MessageBus,
    private readonly log: Log,
    metrics: Metrics,
  ) {
    this.forwarded = metrics.counter({ name: 'forwarder_messages_total', help: 'Messages that were copied from the log to the bus.', labels: ['service'] });
    this.skipped = metrics.counter({ name: 'forwarder_skipped_total', help: 'Records that could not be announced.', labels: ['service'] });
  }

  /** Before the process starts its parts. */
  add({ service, categories }: Forwarded): void {
    if (this.bus.isForNobody) return;
    const owned = new Set(categories);
    // A rise from nothing at all would not be seen as one.
    this.skipped.inc({ service }, 0);
    this.followers.add({
      name: `forwarder.${service}`,
      table: this.readModels.table(checkpointsOf(service)),
      // What is announced in a way that only a later release knows may be of a category that this one does not know either.
      isFor: (record) =>
        (owned.has(categoryOf(record.stream)) || announcesLater(record)) && !isProtocol(record.type) && record.meta.environment !== SYSTEM_ENVIRONMENT,
      handle: async (records) => {
        // What is cut short is published again: the bus has it before the checkpoint does.
        await this.publish(service, records);
        return true;
      },
    });
  }

  private async publish(service: ServiceName, records: readonly RecordedEvent[]): Promise<void> {
    const topics = new Map<string, Message[]>();
    for (const record of records) {
      const { topic, messages } = this.announced(service, record);
      const known = topics.get(topic);
      if (known === undefined) topics.set(topic, [...messages]);
      else known.push(...messages);
    }
    await allDone([...topics].map(([topic, messages]) => (messages.length > 0 ? this.bus.publish(topic, messages) : Promise.resolve())));
    for (const messages of topics.values()) this.forwarded.inc({ service }, messages.length);
  }

  private announced(service: ServiceName, record: RecordedEvent): { readonly topic: string; readonly messages: readonly Message[] } {
    const topic = topicOf(record.meta.environment, service);
    try {
      if (record.public.length === 0)
        return { topic: `${topic}.domain`, messages: [message(service, record, { id: record.id, type: record.type, text: domainText(record) })] };
      return { topic, messages: publicEventsOf(record).map(({ id, name, text }) => message(service, record, { id, type: name, text })) };
    } catch (error) {
      // A record that cannot be read now can be told later.
      if (isUnavailable(error)) throw error;
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
  service: ServiceName,
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

/** What services tell each other beside the public events: nothing personal, such as the hash of a password; secrets in it are sealed. */
function domainText({ id, stream, version, type, shape, data, sealed = [], meta }: RecordedEvent): string {
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
    ...without(
      { data },
      sealed.flatMap(({ fields }) => fields),
    ),
    created_at: new Date(at).toISOString(),
  });
}
