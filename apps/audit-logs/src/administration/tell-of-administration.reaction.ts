import { Injectable } from '@nestjs/common';
import { ADMINISTRATIVE_FACTS, type AdministrativeFact } from '#libs/contracts/src/administration';
import type { Fact, Recorded } from '#libs/event-sourcing/src/deciding/decider';
import type { Reaction } from '#libs/event-sourcing/src/following/reaction';
import { EventStore, type RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import { Origins } from '#libs/event-sourcing/src/sealing/origins';
import { allDone } from '#libs/platform/src/all-done';
import { BoundedMap } from '#libs/platform/src/bounded-map';
import { Clock } from '#libs/platform/src/clock';
import { commandIdOf, derivedId } from '#libs/platform/src/ids';
import { systemContext } from '#libs/platform/src/system-context';
import { canonicalText, termsIn } from '../domain/audit-content.ts';
import { Retention } from '../readers/retention.ts';
import { TrailWriter, type NewTrailEvent } from '../trail/trail-writer.ts';
import type { TrailOwner } from '../sealing/trail-keys.ts';
import { AdministeredStream } from './administered-stream.ts';
import { environmentToldOf, TELLINGS } from './administrative-facts.ts';
import { toldContent } from './told-content.ts';

/** Of them one append is made, so that all are recorded, or none. */
const TOGETHER = 100;
const BYTES_TOGETHER = 256 * 1024;
/** Streams whose facts are remembered. */
const REMEMBERED = 500;
const READ_AT_ONCE = 500;
/** The fact and what is told of it are recorded by hosts of their own. */
const CLOCKS_DIFFER = 86_400_000;

/** What is to be recorded of a fact. */
interface Told {
  readonly owner: TrailOwner;
  readonly event: NewTrailEvent;
}

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
    const told = await this.told(event);
    if (told !== null) await this.writer.add(told.owner, told.event);
  }

  /** Whoever makes many things at once is told of in few appends. */
  async reactTogether(events: readonly Recorded<Fact<AdministrativeFact>>[]): Promise<void> {
    let [waiting, bytes]: [Told[], number] = [[], 0];
    for (const event of events) {
      const told = await this.told(event);
      if (told === null) continue;
      bytes += Buffer.byteLength(told.event.content);
      if (waiting.length === TOGETHER || bytes > BYTES_TOGETHER) {
        await this.record(waiting);
        [waiting, bytes] = [[], Buffer.byteLength(told.event.content)];
      }
      waiting.push(told);
    }
    await this.record(waiting);
  }

  private async record(all: readonly Told[]): Promise<void> {
    await allDone(all.map(({ owner, event }) => this.writer.add(owner, event)));
  }

  /** Null where nothing is told of it. */
  private async told(event: Recorded<Fact<AdministrativeFact>>): Promise<Told | null> {
    const { type, id, meta } = event;
    const environment = environmentToldOf(event);
    const now = this.clock.now();
    if (environment === null) return null;
    const owner = { environment, organization: environment };
    if (meta.at < (await this.retention.since(owner, now))) return null;
    const change = TELLINGS[type].does === 'happens' ? new AdministeredStream().take(event) : await this.changeIn(environment, event);
    if (change === null) return null;
    const content = toldContent(event, change, await this.origins.of(event));
    const commandId = commandIdOf(meta.at, this.name, id);
    return {
      owner,
      event: {
        context: { ...systemContext(environment, now), commandId, idempotencyKey: id },
        id: derivedId(commandId, 0),
        occurredAt: meta.at,
        content: canonicalText(content),
        terms: termsIn(content),
        knownSince: meta.at - CLOCKS_DIFFER,
      },
    };
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
