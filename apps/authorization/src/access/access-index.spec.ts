import { LogFollowing } from '#libs/event-sourcing/src/following/memory-follower';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { LmdbEventStore } from '#libs/event-sourcing/src/lmdb/lmdb.event-store';
import { START, type EventStore, type NewEvent, type Position, type RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import { UpcastingEventStore } from '#libs/event-sourcing/src/log/upcasts';
import { ReadYourWrites } from '#libs/event-sourcing/src/views/read-your-writes';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { SystemClock } from '#libs/platform/src/clock';
import { type DomainError, NeedsLaterRelease } from '#libs/platform/src/domain-error';
import { newUlid } from '#libs/platform/src/ids';
import { Metrics } from '#libs/platform/src/metrics';
import { PinoLog } from '#libs/platform/src/pino.log';
import type { RequestContext } from '#libs/platform/src/request-context';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { systemContext } from '#libs/platform/src/system-context';
import { LmdbReadModels } from '#libs/read-models/src/lmdb.read-models';
import { VIEWS } from '../testing/given-engines.ts';
import { chance, Follower, GivenHistory } from '../testing/given-history.ts';
import { AccessIndex } from './access-index.ts';
import { EnvironmentModel } from './environment-model.ts';
import { OrganizationIndex } from './organization-index.ts';

const clock = new SystemClock();
const log = new PinoLog({ level: 'silent', readable: false, destination: { write: () => {} } });

let directory: string;
let storage: LmdbStorage;
let events: LmdbEventStore;
let rows: Rows;
let index: AccessIndex;
let metrics: Metrics;
/** What the log does instead of what it should. */
let fault: { head?: () => Promise<Position>; isDeaf?: boolean };

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'access-'));
  storage = await LmdbStorage.open({ directory });
  events = new LmdbEventStore(storage);
  rows = new Rows();
  fault = {};
  await open();
});
afterEach(async () => {
  await index.stop();
  await storage.close();
  await rm(directory, { recursive: true });
});

async function open(memory = 2 ** 30): Promise<void> {
  metrics = new Metrics();
  const faulty = new Proxy<EventStore>(events, {
    get: (target, name) => {
      if (name === 'head') return () => fault.head?.() ?? target.head();
      if (name === 'headAtHand') return fault.head === undefined ? target.headAtHand : null;
      if (name !== 'subscribe') return (Reflect.get(target, name) as (...given: readonly unknown[]) => unknown).bind(target);
      return async function* (after: Position, signal: AbortSignal): AsyncIterable<readonly RecordedEvent[]> {
        for await (const batch of target.subscribe(after, signal)) {
          while (fault.isDeaf === true && !signal.aborted) await pause(5);
          if (!signal.aborted) yield batch;
        }
      };
    },
  });
  const views = Object.assign(Object.create(ReadYourWrites.prototype) as ReadYourWrites, { waitForHead: () => rows.catchUp() });
  const settings = { ACCESS_INDEX_MEMORY: memory, RESOURCES_PER_TYPE: 5_000, MULTIPLE_ROLES: true };
  const known = new UpcastingEventStore(faulty, {});
  index = new AccessIndex(known, views, settings, clock, log, new LogFollowing(known, clock, log), rows.readModels, metrics);
  await index.start();
}

/** Rows that follow the log when they are told to. */
class Rows {
  readonly readModels = new LmdbReadModels(storage);
  private position: Position = START;
  private readonly known = new Map<string, object | null>();

  async catchUp(): Promise<void> {
    const head = await events.head();
    if (this.position >= head) return;
    const reading = new AbortController();
    for await (const batch of events.subscribe(this.position, reading.signal)) {
      for (const event of batch) await this.write(event);
      this.position = batch.at(-1)!.position;
      if (this.position >= head) break;
    }
    reading.abort();
    for (const view of VIEWS) await this.readModels.table(tableOf(view)).write([], this.position);
  }

  private async write(event: RecordedEvent): Promise<void> {
    const { environment } = event.meta;
    for (const view of VIEWS.filter(({ handles }) => handles.includes(event.type)))
      for (const id of view.idsOf(event)) {
        const key = `${view.name} ${id}`;
        const row = view.evolve(this.known.get(key) ?? null, event, id);
        this.known.set(key, row);
        const text = row === null ? null : JSON.stringify(row);
        await this.readModels.table(tableOf(view)).write([{ environment, id, position: event.position, revision: event.version, text, row }]);
      }
  }
}

/** An organization of which things are recorded, and what a list of all of it says. */
class Recorded {
  readonly history: GivenHistory;
  private readonly versions = new Map<string, number>();
  private readonly all: RecordedEvent[] = [];

  constructor(seed: number) {
    this.history = new GivenHistory(chance(seed));
  }

  get organization(): string {
    return this.history.organization;
  }

  async begin(steps: number): Promise<this> {
    for (const told of this.history.beginning()) await this.record(told);
    for (let step = 0; step < steps; step++) await this.record(this.history.step());
    return this;
  }

  async record(told: readonly NewEvent[]): Promise<void> {
    for (const event of told) {
      const stream = this.history.streamOf(event);
      const version = this.versions.get(stream) ?? 0;
      this.versions.set(stream, version + 1);
      const { position } = await events.append(stream, version, [event]);
      this.all.push({ ...event, stream, version: version + 1, position });
    }
  }

  /** Made anew from everything. */
  asRecorded(): OrganizationIndex {
    const model = new EnvironmentModel(this.history.environment);
    const follower = new Follower(new OrganizationIndex(this.organization, this.history.environment, model).loaded(), model);
    for (const event of this.all) follower.hear(event);
    return follower.index;
  }
}

function contextOf({ history }: Recorded, timeoutMs = 5_000): RequestContext {
  return { ...systemContext(history.environment, clock.now()), deadline: clock.now() + timeoutMs };
}

/** Everything that one may ask. */
function answersOf(organization: OrganizationIndex, { history }: Recorded): string {
  let text = '';
  for (const membership of history.memberships) {
    const number = organization.membershipNumber(membership);
    for (const resource of history.resources) {
      const node = organization.tree.nodeById(resource);
      for (const { slug } of history.permissions)
        text += number === -1 || node === undefined ? '-' : Number(organization.allows(number, organization.model.permissionBySlug(slug)!, node));
    }
  }
  return text;
}

async function isKnown(recorded: Recorded): Promise<void> {
  const organization = await index.ofOrganization(contextOf(recorded), recorded.organization);
  const answers = answersOf(organization, recorded);
  expect(answers).toBe(answersOf(recorded.asRecorded(), recorded));
}

const refused = async (recorded: Recorded, timeoutMs?: number): Promise<DomainError> =>
  index.ofOrganization(contextOf(recorded, timeoutMs), recorded.organization).then(
    () => Promise.reject(new Error('It answered.')),
    (error: DomainError) => error,
  );

/** Whatever else happens until something of this type does, of which a later release has another shape. */
async function recordLater(recorded: Recorded, type: string): Promise<void> {
  for (;;) {
    const step = recorded.history.step();
    const isIt = step.some((event) => event.type === type);
    await recorded.record(isIt ? step.map((event) => ({ ...event, shape: 2 })) : step);
    if (isIt) return;
  }
}

const metric = async (name: string): Promise<number> => Number(new RegExp(`^gatehouse_${name} (.*)$`, 'm').exec(await metrics.text())?.[1]);

describe('what is asked of an organization', () => {
  it('knows what was recorded before, from rows that are behind, and what is recorded after', async () => {
    const recorded = await new Recorded(1).begin(150);
    await rows.catchUp();
    for (let step = 0; step < 60; step++) await recorded.record(recorded.history.step());
    await isKnown(recorded);
    for (let step = 0; step < 200; step++) {
      await recorded.record(recorded.history.step());
      if (step % 20 === 0) await isKnown(recorded);
    }
  });

  it('is right while many are loaded, asked and written to at once', async () => {
    const all = await Promise.all([2, 3, 4, 5, 6].map((seed) => new Recorded(seed).begin(100)));
    await rows.catchUp();
    await Promise.all(
      all.map(async (recorded) => {
        for (let step = 0; step < 80; step++) {
          await recorded.record(recorded.history.step());
          if (step % 3 === 0) await isKnown(recorded);
          if (step % 40 === 0) await rows.catchUp();
        }
      }),
    );
  });

  it('is found by memberships, resources and groups, also those that are newer than their rows', async () => {
    const recorded = await new Recorded(7).begin(300);
    const { history, organization } = recorded;
    const known = recorded.asRecorded();
    for (const membership of history.memberships) {
      const found = index.ofMembership(contextOf(recorded), membership).then(
        ({ id }) => id,
        (error: DomainError) => error.code,
      );
      expect(await found).toBe(known.membershipNumber(membership) === -1 ? 'entity_not_found' : organization);
    }
    for (const resource of history.resources) {
      const found = index.ofResource(contextOf(recorded), resource).then(
        ({ id }) => id,
        (error: DomainError) => error.code,
      );
      expect(await found).toBe(known.tree.nodeById(resource) === undefined ? 'entity_not_found' : organization);
    }
    const group = { ...history.end()[0]!, id: newUlid(1), type: 'group.created', data: { id: `group_${newUlid(2)}`, organization_id: organization } };
    await events.append(`group-${history.environment}-${group.data.id}`, 0, [{ ...group, meta: { ...group.meta, organization } }]);
    expect((await index.ofGroup(contextOf(recorded), group.data.id)).id).toBe(organization);
    await expect(index.ofGroup(contextOf(recorded), `group_${newUlid(3)}`)).rejects.toMatchObject({ code: 'entity_not_found' });
  });

  it('is nothing where it never was, or is gone, or is of another environment', async () => {
    const [recorded, other] = [await new Recorded(8).begin(20), await new Recorded(9).begin(20)];
    await expect(index.ofOrganization(contextOf(recorded), `org_${newUlid(1)}`)).rejects.toMatchObject({ code: 'entity_not_found' });
    await expect(index.ofOrganization(contextOf(recorded), other.organization)).rejects.toMatchObject({ code: 'entity_not_found' });
    await expect(index.requireOrganization(contextOf(recorded), other.organization)).rejects.toMatchObject({ code: 'entity_not_found' });
    await index.requireOrganization(contextOf(recorded), recorded.organization);
    await isKnown(recorded);
    const { environment, organization } = recorded.history;
    const meta = { environment, organization, actor: { id: 'a', source: 'system' as const, name: null }, requestId: 'r', commandId: 'c', at: 1 };
    const gone = { id: newUlid(1), type: 'organization.deleted', shape: 1, data: { id: organization }, subject: null, public: [], meta };
    await events.append(`organization-${environment}-${organization}`, 1, [gone]);
    await index.requireOrganization(contextOf(other), other.organization);
    for (const ask of [() => index.ofOrganization(contextOf(recorded), organization), () => index.requireOrganization(contextOf(recorded), organization)])
      await expect(ask()).rejects.toMatchObject({ code: 'entity_not_found' });
    for (const membership of recorded.history.memberships)
      await expect(index.ofMembership(contextOf(recorded), membership)).rejects.toMatchObject({ code: 'entity_not_found' });
  });

  it('knows of a user who was deleted while a membership was made, in whatever order that was recorded', async () => {
    const recorded = await new Recorded(10).begin(30);
    const { environment, organization } = recorded.history;
    const [user, id] = [`user_${newUlid(1)}`, `om_${newUlid(2)}`];
    const meta = { environment, actor: { id: 'a', source: 'system' as const, name: null }, requestId: 'r', commandId: 'c', at: 1 };
    const end = { id: newUlid(3), type: 'user.deleted', shape: 1, data: { id: user }, subject: null, public: [], meta };
    const join = (): NewEvent => ({
      ...{ id: newUlid(4), type: 'organization_membership.created', shape: 1, subject: null, public: [] },
      ...{ data: { id, organization_id: organization, user_id: user, status: 'active', roles: [] }, meta: { ...meta, organization } },
    });
    await isKnown(recorded);
    await events.append(`user-${environment}-${user}`, 0, [end]);
    await events.append(`organization_membership-${environment}-${organization}.${user}`, 0, [join()]);
    await expect(index.ofMembership(contextOf(recorded), id)).rejects.toMatchObject({ code: 'entity_not_found' });
    await rows.catchUp();
    await index.stop();
    await open();
    await expect(index.ofMembership(contextOf(recorded), id)).rejects.toMatchObject({ code: 'entity_not_found' });
  });
});

describe('nothing is answered', () => {
  it('while the log does not say where it ends', async () => {
    const recorded = await new Recorded(11).begin(50);
    await isKnown(recorded);
    fault.head = () => Promise.reject(new Error('away'));
    await expect(index.ofOrganization(contextOf(recorded), recorded.organization)).rejects.toMatchObject({ code: 'service_unavailable' });
    fault.head = () => new Promise(() => {});
    expect(await refused(recorded)).toMatchObject({ code: 'service_unavailable' });
    fault = {};
    await isKnown(recorded);
  });

  it('past the deadline, while what was recorded is not heard of', async () => {
    const recorded = await new Recorded(12).begin(50);
    await isKnown(recorded);
    fault.isDeaf = true;
    await recorded.record([...recorded.history.step(), ...recorded.history.step(), ...recorded.history.step(), ...recorded.history.step()]);
    expect(await refused(recorded, 300)).toMatchObject({ code: 'service_unavailable' });
    fault = {};
    await isKnown(recorded);
  });

  it('from what is known of a log that was restored to an earlier state', async () => {
    const recorded = await new Recorded(13).begin(50);
    await isKnown(recorded);
    const head = await events.head();
    const earlier = String(Number(head) - 5).padStart(head.length, '0');
    fault.head = async () => earlier;
    expect(await refused(recorded)).toMatchObject({ code: 'service_unavailable' });
    // It is noticed, and everything is read anew.
    await pause(1_500);
    fault = {};
    await isKnown(recorded);
  });

  it('of an organization of which something cannot be folded; the others go on', async () => {
    const [recorded, other] = [await new Recorded(17).begin(30), await new Recorded(18).begin(30)];
    await isKnown(recorded);
    const { environment, organization } = recorded.history;
    const meta = { environment, organization, actor: { id: 'a', source: 'system' as const, name: null }, requestId: 'r', commandId: 'c', at: 1 };
    const data = { id: 'no id', organization_id: organization };
    await events.append(`group-${environment}-odd`, 0, [{ id: newUlid(1), type: 'group.created', shape: 1, data, subject: null, public: [], meta }]);
    await isKnown(other);
    expect(await refused(recorded)).toMatchObject({ code: 'service_unavailable' });
    for (let step = 0; step < 20; step++) await other.record(other.history.step());
    await isKnown(other);
    expect(await metric('access_index_organizations')).toBe(1);
  });

  it('of an organization of which a later release recorded what this one cannot read, until rows tell of it; the others go on', async () => {
    for (const type of ['organization_membership.updated', 'group.deleted', 'role_assignment.created', 'resource.moved', 'organization_membership.created']) {
      const [recorded, other] = [await new Recorded(19).begin(60), await new Recorded(20).begin(30)];
      for (const each of [recorded, other]) await isKnown(each);
      await recordLater(recorded, type);
      expect(await refused(recorded)).toBeInstanceOf(NeedsLaterRelease);
      await other.record(other.history.step());
      await isKnown(other);
      // A process that begins now has to read it too, until a view of a later release has.
      await index.stop();
      await open();
      expect(await refused(recorded)).toBeInstanceOf(NeedsLaterRelease);
      await rows.catchUp();
      await isKnown(recorded);
    }
  });

  it('for good where it would have to be read from its stream: the roles of an organization, and the model of an environment', async () => {
    const [recorded, ofModel, other] = [await new Recorded(21).begin(60), await new Recorded(22).begin(60), await new Recorded(23).begin(30)];
    for (const each of [recorded, ofModel]) await isKnown(each);
    await recordLater(recorded, 'organization_role.updated');
    await recordLater(ofModel, 'role.updated');
    for (const again of [false, true]) {
      if (again) await index.stop();
      if (again) await open();
      await rows.catchUp();
      for (const each of [recorded, ofModel]) expect(await refused(each)).toBeInstanceOf(NeedsLaterRelease);
      await expect(index.modelOf(contextOf(ofModel))).rejects.toBeInstanceOf(NeedsLaterRelease);
      await index.modelOf(contextOf(recorded));
      await isKnown(other);
    }
  });

  it('of an organization that needs more memory than there is; the others stay', async () => {
    const [small, large] = [await new Recorded(14).begin(30), await new Recorded(15).begin(600)];
    await rows.catchUp();
    const limit = Math.round((small.asRecorded().bytes + large.asRecorded().bytes) / 2);
    await index.stop();
    await open(limit);
    await isKnown(small);
    for (let time = 0; time < 3; time++) expect(await refused(large)).toMatchObject({ code: 'service_unavailable' });
    expect(await metric('access_index_too_large_total')).toBe(3);
    expect(await metric('access_index_organizations')).toBe(1);
    await isKnown(small);
  });

  it('of an organization that has become too large', async () => {
    const recorded = await new Recorded(16).begin(30);
    await index.stop();
    await open(Math.round(1.4 * recorded.asRecorded().bytes));
    await isKnown(recorded);
    for (let step = 0; step < 1_000; step++) await recorded.record(recorded.history.step());
    expect(await refused(recorded)).toMatchObject({ code: 'service_unavailable' });
    expect(await metric('access_index_bytes')).toBeLessThan(2_000);
  });
});

it('those that were not asked for longest leave, and come back when they are asked for', async () => {
  const all = await Promise.all([20, 21, 22, 23].map((seed) => new Recorded(seed).begin(200)));
  await rows.catchUp();
  await index.stop();
  const bytes = all.map((recorded) => recorded.asRecorded().bytes);
  await open(Math.round(1.1 * Math.max(bytes[0]! + bytes[1]!, bytes[2]! + bytes[3]!, bytes[0]! + bytes[3]!)));
  for (let round = 0; round < 3; round++)
    for (const recorded of all) {
      for (let step = 0; step < 5; step++) await recorded.record(recorded.history.step());
      await isKnown(recorded);
      expect(await metric('access_index_organizations')).toBeLessThan(4);
    }
  await Promise.all(all.map(isKnown));
});
