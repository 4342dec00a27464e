import { Injectable } from '@nestjs/common';
import { ADMINISTRATIVE_FACTS, type AdministrativeFact } from '#libs/contracts/src/administration';
import type { Fact, Recorded } from '#libs/event-sourcing/src/deciding/decider';
import type { Reaction } from '#libs/event-sourcing/src/following/reaction';
import { EventStore, type RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import { Origins } from '#libs/event-sourcing/src/sealing/origins';
import { BoundedMap } from '#libs/platform/src/bounded-map';
import { Clock } from '#libs/platform/src/clock';
import { commandIdOf, derivedId } from '#libs/platform/src/ids';
import { systemContext } from '#libs/platform/src/system-context';
import { canonicalText, termsIn } from '../domain/audit-content.ts';
import { Retention } from '../readers/retention.ts';
import { TrailWriter } from '../trail/trail-writer.ts';
import { AdministeredStream } from './administered-stream.ts';
import { environmentToldOf, TELLINGS } from './administrative-facts.ts';
import { toldContent } from './told-content.ts';

/** Streams whose facts are remembered. */
const REMEMBERED = 500;
const READ_AT_ONCE = 500;
/** The fact and what is told of it are recorded by hosts of their own. */
const CLOCKS_DIFFER = 86_400_000;

/**
 * Tells the trail of an environment of each fact by which it is administered, in the order of the log. What it records derives from the fact alone, id and digest too, so it is there once, whoever comes to
 * the fact how often. It follows from the beginning of the log, so that nothing is lost with a checkpoint, and passes over what would not be kept any more.
 */
@Injectable()
export class TellOfAdministration implements Reaction<Fact<AdministrativeFact>> {
  readonly name = 'tell-of-administration';
  readonly handles = ADMINISTRATIVE_FACTS;
  private readonly streams = new BoundedMap<AdministeredStream>(REMEMBERED);

  constructor(
    private readonly events: EventStore,
    private readonly writer: TrailWriter,
    private readonly origins: Origins,
    private readonly retention: Retention,
    private readonly clock: Clock,
  ) {}

  async react(event: Recorded<Fact<AdministrativeFact>>): Promise<void> {
    const { type, id, meta } = event;
    const environment = environmentToldOf(event);
    const now = this.clock.now();
    if (environment === null) return;
    const owner = { environment, organization: environment };
    if (meta.at < (await this.retention.since(owner, now))) return;
    const change = TELLINGS[type].does === 'happens' ? new AdministeredStream().take(event) : await this.changeIn(environment, event);
    if (change === null) return;
    const content = toldContent(event, change, await this.origins.of(event));
    const commandId = commandIdOf(meta.at, this.name, id);
    await this.writer.add(owner, {
      context: { ...systemContext(environment, now), commandId, idempotencyKey: id },
      id: derivedId(commandId, 0),
      occurredAt: meta.at,
      content: canonicalText(content),
      terms: termsIn(content),
      knownSince: meta.at - CLOCKS_DIFFER,
    });
  }

  /** Of a stream that is at hand, nothing but what came between is read. */
  private async changeIn(environment: string, event: RecordedEvent): Promise<ReturnType<AdministeredStream['take']>> {
    const remembered = this.streams.get(environment, event.stream);
    const stream = remembered === undefined || remembered.version >= event.version ? new AdministeredStream() : remembered;
    // Where it fails half-way, it begins anew.
    this.streams.delete(environment, event.stream);
    for (let missing = event.version - 1 - stream.version; missing > 0; missing = event.version - 1 - stream.version) {
      const upTo = stream.version + Math.min(missing, READ_AT_ONCE);
      const records = await this.events.readBackwards(event.stream, upTo - stream.version, upTo);
      for (const record of records.toReversed()) stream.take(record);
    }
    const change = stream.take(event);
    this.streams.set(environment, event.stream, stream);
    return change;
  }
}
