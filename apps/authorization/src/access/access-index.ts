import { Injectable } from '@nestjs/common';
import type { DirectoryGroupEvent } from '#apps/directory-sync/src/domain/directory-group.decider';
import { LogFollowing, type MemoryFollower } from '#libs/event-sourcing/src/following/memory-follower';
import { EventStore, START, type Position, type RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import { streamName } from '#libs/event-sourcing/src/log/naming';
import { ReadYourWrites } from '#libs/event-sourcing/src/views/read-your-writes';
import { Clock } from '#libs/platform/src/clock';
import { AuthorizationSettings } from '#libs/platform/src/config/settings';
import { within } from '#libs/platform/src/deadline';
import { DomainError, NeedsLaterRelease, notFound, unavailable } from '#libs/platform/src/domain-error';
import type { BackgroundComponent } from '#libs/platform/src/lifecycle';
import { Log } from '#libs/platform/src/log';
import { Metrics } from '#libs/platform/src/metrics';
import type { RequestContext } from '#libs/platform/src/request-context';
import { TimeSlicer } from '#libs/platform/src/time-slicer';
import { contentOf, ReadModels, type Table } from '#libs/read-models/src/read-models';
import type { MappingsChanged } from '../domain/organization-roles.decider.ts';
import { organizationResourceId } from '../domain/resource-tree.ts';
import { EnvironmentModel } from './environment-model.ts';
import { hashOfRead, readId } from './id-table.ts';
import { MembershipRoutes } from './membership-routes.ts';
import { OrganizationIndex } from './organization-index.ts';
import { IndexRows } from './organization-loading.ts';

/** After this, an organization that was too large is tried again: it may have become smaller. */
const TOO_LARGE_FOR = 60_000;
/** After this, what could not be folded is tried again: an operator may have looked. */
const BROKEN_FOR = 30_000;
/** Users and organizations that were deleted last, of all environments. What was made at the same time may be recorded after, and rows may lag behind. */
const ENDED_LAST = 50_000;
/** How long a load waits for what it needs; whoever waits for the load may give up before. */
const ROWS_TIMEOUT_MS = 30_000;
/** An index with more places that are taken up by what is gone than this, and than by what lives, is loaded anew when it is asked for. */
const MANY_GONE = 10_000;

const DIRECTORY_GROUP: ReadonlySet<string> = new Set<DirectoryGroupEvent['type']>([
  'dsync.group.created',
  'dsync.group.deleted',
  'directory_group.ended',
  'directory_group.members_changed',
]);
/** Of the streams that tell what an environment says to all of its organizations. */
const MODEL_CATEGORIES = ['authorization_model', 'environment_settings'] as const;

/** An organization in memory, or on its way there. */
interface Entry {
  readonly index: OrganizationIndex;
  readonly environment: string;
  bytes: number;
  /** Counts up with every use of any. */
  usedAt: number;
  /** What was recorded while its rows were read; null once it is told everything at once. */
  pending: RecordedEvent[] | null;
  /** While it is told nothing because a group gives roles whose members are still read; never rejects. */
  learning: Promise<void> | null;
}

interface ModelEntry {
  readonly model: EnvironmentModel;
  readonly loaded: Promise<void>;
  /** As with an organization. */
  pending: RecordedEvent[] | null;
}

/**
 * What access depends on, of the organizations that are asked about, in memory. Follows the log, and answers nothing before it knows all that was recorded before
 * it was asked. What it hands out is used before the next `await`.
 */
@Injectable()
export class AccessIndex implements BackgroundComponent {
  readonly name = 'access index';
  readonly stage = 'views';
  private readonly rows: IndexRows;
  private readonly follower: MemoryFollower;
  /** Everything up to here was heard; null: nothing is known, or nothing any more. */
  private heard: Position | null = null;
  private readonly models = new Map<string, ModelEntry>();
  /** By environment, then by organization. */
  private readonly entries = new Map<string, Map<string, Entry>>();
  private readonly loading = new Map<string, Promise<Entry>>();
  /** Those that were tried in vain, and how long nobody tries again. */
  private readonly givenUp = new Map<string, { readonly until: number; readonly why: 'too large' | 'unreadable' }>();
  private routes = new MembershipRoutes();
  private readonly ended = new Set<string>();
  private bytes = 0;
  private uses = 0;
  /** Counts up whenever everything that is known was forgotten. */
  private beginnings = 0;
  private readonly refused;
  private readonly loads;

  constructor(
    private readonly events: EventStore,
    private readonly views: ReadYourWrites,
    private readonly settings: AuthorizationSettings,
    private readonly clock: Clock,
    private readonly log: Log,
    following: LogFollowing,
    readModels: ReadModels,
    metrics: Metrics,
  ) {
    this.rows = new IndexRows(readModels, events);
    this.follower = following.remember({
      name: this.name,
      types: null,
      isFor: mayConcern,
      pace: 'prompt',
      begin: (isAgain) => this.begin(isAgain),
      handle: (events) => this.handle(events),
    });
    this.refused = metrics.counter({
      name: 'access_index_too_large_total',
      help: 'Organizations that were refused because they need more than ACCESS_INDEX_MEMORY.',
    });
    this.loads = metrics.histogram({ name: 'access_index_load_seconds', help: 'How long organizations took to be loaded for access checks.' });
    metrics.gauge({
      name: 'access_index_bytes',
      help: 'Memory of what access checks are answered from.',
      collect: (gauge) => gauge.set(this.bytes + this.routes.bytes),
    });
    metrics.gauge({ name: 'access_index_organizations', help: 'Organizations in memory for access checks.', collect: (gauge) => gauge.set(this.all().length) });
  }

  start(): Promise<void> {
    return this.follower.start();
  }

  stop(): Promise<void> {
    return this.follower.stop();
  }

  /**
   * An organization, knowing everything that was recorded before the call. Use it before the next `await`.
   * @throws DomainError `entity_not_found`; `service_unavailable` where that cannot be known in time
   */
  async ofOrganization({ environment, deadline }: RequestContext, organizationId: string): Promise<OrganizationIndex> {
    await this.current(deadline);
    const index = (await this.entry(environment, organizationId, deadline)).index;
    if (!index.isAlive) throw notFound('Organization', organizationId);
    return index;
  }

  /**
   * The organization of a live membership. Use it before the next `await`.
   * @throws DomainError as `ofOrganization`
   */
  async ofMembership({ environment, deadline }: RequestContext, membershipId: string): Promise<OrganizationIndex> {
    await this.current(deadline);
    const known = this.routed(environment, membershipId);
    if (known !== null) return known;
    const row = await this.row(this.rows.memberships, environment, membershipId, deadline);
    const index = row === null ? null : (await this.entry(environment, row.organization_id, deadline)).index;
    if (index === null || !index.isAlive || index.membershipNumber(membershipId) === -1) throw notFound('Organization membership', membershipId);
    return index;
  }

  /**
   * The organization of a live resource. Use it before the next `await`.
   * @throws DomainError as `ofOrganization`
   */
  async ofResource({ environment, deadline }: RequestContext, resourceId: string): Promise<OrganizationIndex> {
    await this.current(deadline);
    const row = await this.row(this.rows.resources, environment, resourceId, deadline);
    const index = row === null ? null : (await this.entry(environment, row.organization_id, deadline)).index;
    if (index === null || !index.isAlive || index.tree.nodeById(resourceId) === undefined) throw notFound('Resource', resourceId);
    return index;
  }

  /**
   * The organization of a live group. Use it before the next `await`.
   * @throws DomainError as `ofOrganization`
   */
  async ofGroup({ environment, deadline }: RequestContext, groupId: string): Promise<OrganizationIndex> {
    await this.current(deadline);
    const row = await this.row(this.rows.groups, environment, groupId, deadline);
    const index = row === null ? null : (await this.entry(environment, row.organization_id, deadline)).index;
    if (index === null || !index.isAlive || index.group(groupId) === null) throw notFound('Group', groupId);
    return index;
  }

  /**
   * The model of an environment, knowing everything that was recorded before the call. Use it before the next `await`.
   * @throws DomainError `service_unavailable`
   */
  async modelOf({ environment, deadline }: RequestContext): Promise<EnvironmentModel> {
    await this.current(deadline);
    return this.modelIn(environment, deadline);
  }

  /**
   * Makes sure that there is such an organization, without loading it.
   * @throws DomainError as `ofOrganization`
   */
  async requireOrganization({ environment, deadline }: RequestContext, organizationId: string): Promise<void> {
    await this.current(deadline);
    const entry = this.entries.get(environment)?.get(organizationId);
    if (entry?.pending === null) {
      if (!entry.index.isAlive) throw notFound('Organization', organizationId);
      return;
    }
    await this.requireRow(environment, organizationId, deadline);
  }

  /**
   * Resolves once everything up to a position is known here.
   * @throws DomainError `service_unavailable` past the deadline (milliseconds since the epoch)
   */
  reached(position: Position, deadline: number): Promise<void> {
    return this.follower.reached(position, deadline);
  }

  /** Everything is known that was recorded before the call. @throws DomainError `service_unavailable` past the deadline, or where the log cannot be asked */
  private current(deadline: number): Promise<void> {
    return this.follower.headReached(deadline);
  }

  private routed(environment: string, membershipId: string): OrganizationIndex | null {
    if (!readId('om', membershipId)) throw notFound('Organization membership', membershipId);
    const hash = hashOfRead();
    const found = this.routes.find(hash, (index) => index.environment === environment && index.membershipNumberOfRead(hash) !== -1);
    if (found === null) return null;
    const entry = this.entries.get(environment)?.get(found.id);
    if (entry?.index !== found || entry.pending !== null || !found.isAlive) return null;
    entry.usedAt = ++this.uses;
    return found;
  }

  private async requireRow(environment: string, organizationId: string, deadline: number): Promise<void> {
    const row = await this.row(this.rows.resources, environment, organizationResourceId(organizationId), deadline);
    // The id of the resource holds but the end of that of the organization; and a row may still be there when the end of what it tells of was heard.
    if (row?.organization_id !== organizationId || this.ended.has(`${environment} ${organizationId}`)) throw notFound('Organization', organizationId);
  }

  /** What is not found may not be written yet: it is looked for again once the rows say what was recorded before. */
  private async row<Row>(table: Table<Row>, environment: string, id: string, deadline: number): Promise<Row | null> {
    const row = await this.views.retryAtHead(deadline, () => table.get(environment, id));
    return row === null ? null : contentOf(row);
  }

  private async modelIn(environment: string, deadline: number): Promise<EnvironmentModel> {
    const entry = this.models.get(environment) ?? this.newModel(environment);
    if (entry.pending !== null) await within(entry.loaded, deadline - this.clock.now(), late);
    if (this.models.get(environment) !== entry) throw late();
    return entry.model;
  }

  private newModel(environment: string): ModelEntry {
    const model = new EnvironmentModel(environment, this.settings.MULTIPLE_ROLES);
    const load = async (): Promise<void> => {
      try {
        for (const category of MODEL_CATEGORIES)
          for (const event of await this.events.read(streamName(category, environment, environment))) applyToModel(model, event);
        // The stream may be ahead of what this process knows: nothing is answered between the two.
        await this.current(Infinity);
        for (const event of entry.pending!) applyToModel(model, event);
        entry.pending = null;
      } catch (error) {
        if (this.models.get(environment) === entry) this.models.delete(environment);
        throw error instanceof DomainError ? error : this.brokenModel(environment, error);
      }
    };
    const entry: ModelEntry = { model, loaded: Promise.resolve().then(load), pending: [] };
    entry.loaded.catch(() => {});
    this.models.set(environment, entry);
    return entry;
  }

  /** In memory, as far as the log is known here. */
  private async entry(environment: string, organizationId: string, deadline: number): Promise<Entry> {
    const known = this.entries.get(environment)?.get(organizationId);
    if (known?.learning != null) {
      await within(known.learning, deadline - this.clock.now(), late);
      return this.entry(environment, organizationId, deadline);
    }
    if (known !== undefined && known.pending === null) {
      if (isMostlyGone(known.index)) this.forget(known);
      else {
        known.usedAt = ++this.uses;
        return known;
      }
    }
    const key = `${environment} ${organizationId}`;
    const givenUp = this.givenUp.get(key);
    if (givenUp !== undefined) {
      if (givenUp.until > this.clock.now()) throw givenUp.why === 'too large' ? this.tooLarge() : unreadable();
      this.givenUp.delete(key);
    }
    let loading = this.loading.get(key);
    if (loading === undefined) {
      loading = this.load(environment, organizationId).finally(() => this.loading.delete(key));
      loading.catch(() => {});
      this.loading.set(key, loading);
    }
    return within(loading, deadline - this.clock.now(), late);
  }

  private async load(environment: string, organizationId: string): Promise<Entry> {
    const started = performance.now();
    const { beginnings } = this;
    await this.requireRow(environment, organizationId, this.clock.now() + ROWS_TIMEOUT_MS);
    const model = await this.modelIn(environment, this.clock.now() + ROWS_TIMEOUT_MS);
    const from = this.heard;
    if (from === null || this.models.get(environment)?.model !== model) throw late();
    const entry: Entry = {
      index: new OrganizationIndex(organizationId, environment, model),
      environment,
      bytes: 0,
      usedAt: ++this.uses,
      pending: [],
      learning: null,
    };
    const { index } = entry;
    this.entries.set(environment, (this.entries.get(environment) ?? new Map<string, Entry>()).set(organizationId, entry));
    try {
      const checkpoint = await this.rows.checkpoint();
      const before = await this.rows.recorded(checkpoint, from, (event) => concerns(event, environment, organizationId));
      await this.rows.read(environment, index, () => this.measure(entry));
      // Rows may be ahead of what this process knows: until it knows as much, none of it is whole.
      await this.current(Infinity);
      await this.catchUp(entry, before);
      index.loaded(this.heard ?? from);
      const slicer = new TimeSlicer();
      for (const number of index.memberNumbers()) {
        this.routes.add(index.hashOfMembership(number), index);
        if (number % 256 === 0) await slicer.step();
      }
      this.measure(entry);
    } catch (error) {
      this.forget(entry);
      if (error instanceof TooLarge) throw this.tooLargeNow(entry);
      if (error instanceof DomainError) throw error;
      this.giveUp(entry, 'unreadable');
      throw this.broken(entry, error);
    }
    // The log was restored meanwhile: what was read may be of the other one.
    if (beginnings !== this.beginnings || !this.isKept(entry)) {
      this.forget(entry);
      throw late();
    }
    const rest = entry.pending!;
    entry.pending = null;
    for (const event of rest) this.tell(entry, event);
    while (entry.learning !== null) await entry.learning;
    if (!this.isKept(entry)) throw late();
    this.evict(entry);
    this.loads.observe((performance.now() - started) / 1_000);
    return entry;
  }

  /** Who is in the groups that give roles from this event on, while it is not told yet. */
  private async learnGroups(entry: Entry, event: RecordedEvent): Promise<void> {
    const { environment, index } = entry;
    const groups = new Set(index.unknownGroupsIn(event));
    index.mapped.expect(groups, (event.data as MappingsChanged).directory_id);
    const [checkpoint, heard] = [await this.rows.mappedCheckpoint(), this.heard ?? START];
    const since = await this.rows.recorded(checkpoint, heard, (each) => concernsGroups(each, environment, groups));
    await this.rows.readMapped(environment, index, () => this.measure(entry));
    // As in `load`.
    await this.current(Infinity);
    for (const each of since) index.apply(each);
  }

  /** Nothing is answered of the organization until it is known who is in the groups that give roles from this event on. */
  private learn(entry: Entry, event: RecordedEvent): void {
    entry.pending = [event];
    const learn = async (): Promise<void> => {
      try {
        await this.catchUp(entry, []);
        this.measure(entry);
      } catch (error) {
        if (error instanceof TooLarge) this.tooLargeNow(entry);
        else if (!(error instanceof DomainError)) this.broken(entry, error);
        this.forget(entry);
      }
      entry.learning = null;
      if (!this.isKept(entry)) return;
      const rest = entry.pending!;
      entry.pending = null;
      for (const each of rest) this.tell(entry, each);
    };
    entry.learning = learn();
  }

  /** Tells what was recorded since the rows, and what was heard since then. */
  private async catchUp(entry: Entry, before: readonly RecordedEvent[]): Promise<void> {
    const slicer = new TimeSlicer();
    let news = before;
    do {
      await this.learnEndedUsers(news);
      for (const event of news) {
        if (entry.index.unknownGroupsIn(event).length > 0) await this.learnGroups(entry, event);
        this.apply(entry, event);
        await slicer.step();
      }
      news = entry.pending!.splice(0);
    } while (news.length > 0);
  }

  private isKept({ environment, index }: Entry): boolean {
    return this.entries.get(environment)?.get(index.id)?.index === index;
  }

  /** @throws TooLarge; DomainError `service_unavailable` where everything was forgotten since */
  private measure(entry: Entry): void {
    if (!this.isKept(entry)) throw late();
    const { bytes } = entry.index;
    this.bytes += bytes - entry.bytes;
    entry.bytes = bytes;
    if (bytes > this.settings.ACCESS_INDEX_MEMORY) throw new TooLarge();
  }

  private tooLargeNow(entry: Entry): DomainError {
    const { environment, index, bytes } = entry;
    this.log.error('An organization needs more memory than ACCESS_INDEX_MEMORY allows; nothing can be answered about it.', {
      environment,
      organization: index.id,
      bytes,
    });
    this.giveUp(entry, 'too large');
    return this.tooLarge();
  }

  private tooLarge(): DomainError {
    this.refused.inc();
    return unavailable('This organization is too large for the memory that access checks may take up.', TOO_LARGE_FOR / 1_000);
  }

  private giveUp({ environment, index }: Entry, why: 'too large' | 'unreadable'): void {
    this.givenUp.set(`${environment} ${index.id}`, { until: this.clock.now() + (why === 'too large' ? TOO_LARGE_FOR : BROKEN_FOR), why });
  }

  /** Those that were not asked for longest leave, until the rest has room; not the one that was just loaded, nor those on their way. */
  private evict(kept: Entry): void {
    while (this.bytes > this.settings.ACCESS_INDEX_MEMORY) {
      let oldest: Entry | null = null;
      for (const entry of this.all()) if (entry !== kept && entry.pending === null && (oldest === null || entry.usedAt < oldest.usedAt)) oldest = entry;
      if (oldest === null) return;
      this.forget(oldest);
    }
  }

  private forget(entry: Entry): void {
    this.routes.forget(entry.index);
    if (!this.isKept(entry)) return;
    this.entries.get(entry.environment)!.delete(entry.index.id);
    this.bytes -= entry.bytes;
  }

  /** What cannot be folded keeps nobody waiting but those who ask about its organization: it is loaded anew, and refused for as long as that fails. */
  private broken({ environment, index }: Entry, error: unknown): DomainError {
    // Nothing is broken: a replica of that release is asked.
    if (error instanceof NeedsLaterRelease) return error;
    this.log.error('What access in an organization depends on cannot be folded; nothing is answered about it.', { environment, organization: index.id, error });
    return unreadable();
  }

  /** The same for all organizations of an environment. */
  private brokenModel(environment: string, error: unknown): DomainError {
    this.models.delete(environment);
    for (const entry of [...(this.entries.get(environment)?.values() ?? [])]) this.forget(entry);
    if (error instanceof NeedsLaterRelease) return error;
    this.log.error('What roles and permissions an environment has cannot be folded; nothing is answered about access in it.', { environment, error });
    return unreadable();
  }

  private all(): readonly Entry[] {
    return [...this.entries.values()].flatMap((ofEnvironment) => [...ofEnvironment.values()]);
  }

  private async begin(isAgain: boolean): Promise<Position> {
    if (isAgain) {
      this.heard = null;
      this.beginnings++;
      this.entries.clear();
      this.models.clear();
      this.loading.clear();
      this.givenUp.clear();
      this.ended.clear();
      this.routes = new MembershipRoutes();
      this.bytes = 0;
    }
    const head = await this.events.head();
    this.heard = head;
    return head;
  }

  private async handle(batch: readonly RecordedEvent[]): Promise<void> {
    const { heard } = this;
    // What was handled comes again where the connection broke meanwhile, and not always in the same batches.
    const news = heard === null ? batch : batch.filter(({ position }) => position > heard);
    if (news.length === 0) return;
    await this.learnEndedUsers(news);
    const touched = new Set<Entry>();
    const slicer = new TimeSlicer();
    for (const event of news) {
      this.hear(event, touched);
      this.heard = event.position;
      const pause = slicer.step();
      if (pause !== null) await pause;
    }
    for (const entry of touched) this.measureAgain(entry);
  }

  private hear(event: RecordedEvent, touched: Set<Entry>): void {
    const { environment, organization } = event.meta;
    if (event.type === 'user.deleted') {
      this.noteEnd(environment, userIn(event));
      for (const entry of this.entries.get(environment)?.values() ?? []) this.tell(entry, event);
    } else if (organization !== undefined) {
      if (event.type === 'organization.deleted') this.noteEnd(environment, organization);
      const entry = this.entries.get(environment)?.get(organization);
      if (entry === undefined) return;
      this.tell(entry, event);
      touched.add(entry);
    } else if (isOfModel(event.stream)) this.tellModel(event);
  }

  private tellModel(event: RecordedEvent): void {
    const { environment } = event.meta;
    const known = this.models.get(environment);
    if (known === undefined) return;
    if (known.pending !== null) return void known.pending.push(event);
    try {
      applyToModel(known.model, event);
    } catch (error) {
      this.brokenModel(environment, error);
    }
  }

  private tell(entry: Entry, event: RecordedEvent): void {
    if (entry.pending !== null) return void entry.pending.push(event);
    try {
      if (entry.index.unknownGroupsIn(event).length > 0) return this.learn(entry, event);
      this.apply(entry, event);
    } catch (error) {
      this.broken(entry, error);
      this.forget(entry);
    }
  }

  private apply({ index, environment, pending }: Entry, event: RecordedEvent): void {
    if (event.type === 'user.deleted') {
      const id = userIn(event);
      // Also one of before this process began, whose row comes late.
      this.noteEnd(environment, id);
      return index.endUser(id);
    }
    index.apply(event);
    if (event.type !== 'organization_membership.created') return;
    const { id, user_id } = event.data as { readonly id: string; readonly user_id: string };
    if (this.ended.has(`${environment} ${user_id}`)) index.endUser(user_id);
    const number = index.membershipNumber(id);
    if (pending === null && number !== -1) this.routes.add(index.hashOfMembership(number), index);
  }

  private noteEnd(environment: string, id: string): void {
    const key = `${environment} ${id}`;
    // Behind the others, also where it was known: those noted first are forgotten first.
    this.ended.delete(key);
    this.ended.add(key);
    if (this.ended.size > ENDED_LAST) this.ended.delete(this.ended.values().next().value!);
  }

  /** A membership may have been made while its user was deleted, before this process began to follow the log. */
  private async learnEndedUsers(batch: readonly RecordedEvent[]): Promise<void> {
    const made = batch.filter(
      ({ type, meta }) => type === 'organization_membership.created' && this.entries.get(meta.environment)?.has(meta.organization ?? '') === true,
    );
    const learn = async (event: RecordedEvent): Promise<void> => {
      const { environment, organization } = event.meta;
      try {
        const { user_id } = event.data as { readonly user_id: string };
        if (await this.rows.hasEnded(environment, user_id)) this.noteEnd(environment, user_id);
      } catch (error) {
        // Nobody waits for that but those who ask about the organization: it is loaded anew.
        this.log.warn('Whether the user of a new membership was deleted cannot be learned.', { environment, organization, error });
        const entry = this.entries.get(environment)?.get(organization!);
        if (entry !== undefined) this.forget(entry);
      }
    };
    await Promise.all(made.map(learn));
  }

  private measureAgain(entry: Entry): void {
    if (entry.pending !== null || !this.isKept(entry)) return;
    try {
      this.measure(entry);
      this.evict(entry);
    } catch (error) {
      if (!(error instanceof TooLarge)) throw error;
      this.tooLargeNow(entry);
      this.forget(entry);
    }
  }
}

class TooLarge extends Error {}

/** The user of whom an event tells: the key of its stream. */
function userIn({ stream, meta }: RecordedEvent): string {
  return stream.slice(streamName('user', meta.environment, '').length);
}

/** Whether an event may say something of an organization, a model, or a user: nothing else is looked into. */
function mayConcern({ type, stream, meta }: RecordedEvent): boolean {
  return meta.organization !== undefined || type === 'user.deleted' || isOfModel(stream);
}

/** Whether an event says something of the organization, or of a user who may be in it. */
function concerns({ type, meta }: RecordedEvent, environment: string, organizationId: string): boolean {
  return meta.environment === environment && (meta.organization === organizationId || type === 'user.deleted');
}

/** Whether an event says something of one of these groups of directories. */
function concernsGroups({ type, data, meta }: RecordedEvent, environment: string, groups: ReadonlySet<string>): boolean {
  return meta.environment === environment && DIRECTORY_GROUP.has(type) && groups.has((data as { readonly id: string }).id);
}

function isOfModel(stream: string): boolean {
  return MODEL_CATEGORIES.some((category) => stream.startsWith(`${category}-`));
}

function applyToModel(model: EnvironmentModel, event: RecordedEvent): void {
  if (event.stream.startsWith('environment_settings-')) model.applySettings(event);
  else model.apply(event);
}

function isMostlyGone({ tree, ended }: OrganizationIndex): boolean {
  return (tree.deadNodes > MANY_GONE && tree.deadNodes > tree.size) || (ended.gone > MANY_GONE && ended.gone > ended.live);
}

function unreadable(): DomainError {
  return unavailable('What this answer depends on cannot be read; an operator has to look.', BROKEN_FOR / 1_000);
}

function late(): DomainError {
  return unavailable('This organization is still being read into memory.');
}
