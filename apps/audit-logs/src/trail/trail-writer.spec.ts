import { EventStore, type Appended, type LooksInto, type NewEvent, type Position, type RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import { SystemClock } from '#libs/platform/src/clock';
import { unavailable } from '#libs/platform/src/domain-error';
import { derivedId, newCommandId } from '#libs/platform/src/ids';
import { systemContext } from '#libs/platform/src/system-context';
import { ReadModels, type Table, type TableDefinition } from '#libs/read-models/src/read-models';
import type { Engines } from '#libs/runtime/src/engines';
import { ENVIRONMENT, givenServices, type GivenServices } from '#libs/testing/src/given-services';
import { KeptLog } from '#libs/testing/src/kept-log';
import { until } from '#libs/testing/src/until';
import { ExpiredEvents } from '../retention/expired-events.ts';
import { TrailReader } from '../readers/trail-reader.ts';
import { TrailKeys } from '../sealing/trail-keys.ts';
import { TrailTrees } from '../tree/trail-trees.ts';
import { EndedTrails } from './ended-trails.ts';
import { TrailWriter, type NewTrailEvent } from './trail-writer.ts';

/** A log that can keep its answers to itself, or take its time. */
class SlowLog extends EventStore {
  losesAnswers = false;
  /** Events of each append. */
  readonly appends: number[] = [];
  private held: Promise<void> | null = null;
  private release: () => void = () => {};

  constructor(private readonly events: EventStore) {
    super();
  }

  hold(): void {
    this.held = new Promise((resolve) => (this.release = resolve));
  }

  letGo(): void {
    this.held = null;
    this.release();
  }

  async append(stream: string, expectedVersion: number, events: readonly NewEvent[]): Promise<Appended> {
    if (!/^audit_trail-[^-]+-org_/.test(stream)) return this.events.append(stream, expectedVersion, events);
    this.appends.push(events.length);
    await this.held;
    const appended = await this.events.append(stream, expectedVersion, events);
    if (this.losesAnswers) throw unavailable('The answer was lost.');
    return appended;
  }

  read(stream: string, from?: number): Promise<readonly RecordedEvent[]> {
    return this.events.read(stream, from);
  }

  readBackwards(stream: string, count: number, from?: number): Promise<readonly RecordedEvent[]> {
    return this.events.readBackwards(stream, count, from);
  }

  last(stream: string): Promise<RecordedEvent | null> {
    return this.events.last(stream);
  }

  head(): Promise<Position> {
    return this.events.head();
  }

  subscribe(after: Position, signal: AbortSignal, looksInto?: LooksInto): AsyncIterable<readonly RecordedEvent[]> {
    return this.events.subscribe(after, signal, looksInto);
  }
}

/** Rows that come when they are let in. */
class LateRows extends ReadModels {
  /** Pages that were asked for. */
  pages = 0;
  private opened: Promise<void> = Promise.resolve();
  private letIn: () => void = () => {};

  constructor(private readonly rows: ReadModels) {
    super();
  }

  table<Row>(definition: TableDefinition<Row>): Table<Row> {
    const table = this.rows.table(definition);
    if (!definition.name.startsWith('audit_trail')) return table;
    const write: Table<Row>['write'] = async (...args) => this.opened.then(() => table.write(...args));
    return new Proxy(table, {
      get: (target, name) => {
        if (name === 'page') this.pages += 1;
        const value: unknown = name === 'write' ? write : Reflect.get(target, name);
        return typeof value === 'function' && name !== 'write' ? (value as (...args: unknown[]) => unknown).bind(target) : value;
      },
    });
  }

  drop(table: string): Promise<void> {
    return this.rows.drop(table);
  }

  close(): void {
    this.opened = new Promise((resolve) => (this.letIn = resolve));
  }

  open(): void {
    this.letIn();
  }
}

describe('whoever writes a trail', () => {
  const clock = new SystemClock();
  const log = new KeptLog();
  let services: GivenServices;
  let engines: Engines;
  let events: SlowLog;
  let rows: LateRows;
  let reader: TrailReader;
  let organization: string;
  let contents = 0;
  beforeAll(async () => {
    services = await givenServices((embedded) => {
      events = new SlowLog(embedded.events);
      rows = new LateRows(embedded.readModels);
      return (engines = { ...embedded, events, readModels: rows });
    });
    reader = new TrailReader(new TrailKeys(engines.keys), rows);
  });
  afterAll(() => services.close());
  beforeEach(async () => {
    organization = (await services.ask('CreateOrganization', { name: 'Acme' })).id;
    await reader.rows.find({ environment: ENVIRONMENT, deadline: Date.now() + 5_000 }, organization);
  });
  afterEach(() => rows.open());

  const owner = () => ({ environment: ENVIRONMENT, organization });
  const writer = (): TrailWriter => new TrailWriter(events, new TrailKeys(engines.keys), reader, clock, log, rows);
  const event = (content = `{"n":${contents++}}`, { key, patience = 5_000 }: { key?: string; patience?: number } = {}): NewTrailEvent => {
    const context = { ...systemContext(ENVIRONMENT, Date.now()), deadline: Date.now() + patience, ...(key !== undefined && { idempotencyKey: key }) };
    return { context, id: derivedId(newCommandId(Date.now()), 0), occurredAt: Date.now(), content, terms: [['action', 'a']] };
  };
  const recorded = () => events.read(`audit_trail-${ENVIRONMENT}-${organization}`);

  it('knows what rows do not show yet, from the stream', async () => {
    const [first, second] = [event(), event()];
    rows.close();
    const position = await writer().add(owner(), first);
    await writer().add(owner(), second);
    const another = writer();
    expect(await another.add(owner(), first)).toBe(position);
    await another.add(owner(), event());
    expect(await recorded()).toHaveLength(3);
    // And from rows once they do.
    rows.open();
    const end = (await recorded()).at(-1)!.position;
    await until(async () => (await reader.rows.checkpoint()) >= end);
    await writer().add(owner(), second);
    expect(await recorded()).toHaveLength(3);
  });

  it('looks for a new event in no row, and in rows for one that may have been recorded before what was read of the stream', async () => {
    const one = writer();
    const [first, ...others] = Array.from({ length: 120 }, () => event());
    await one.add(owner(), first!);
    await Promise.all(others.map((each) => one.add(owner(), each)));
    const end = (await recorded()).at(-1)!.position;
    await until(async () => (await reader.rows.checkpoint()) >= end);
    rows.pages = 0;
    await one.add(owner(), event());
    expect(rows.pages).toBe(0);
    await one.add(owner(), first!);
    await writer().add(owner(), first!);
    expect(rows.pages).toBe(2);
    expect(await recorded()).toHaveLength(121);
  });

  it('looks again where another was faster', async () => {
    const [one, other] = [writer(), writer()];
    const [first, second, third] = [event(), event(), event('{"keyed":true}', { key: 'k' })];
    await one.add(owner(), first);
    await other.add(owner(), second);
    rows.close();
    await one.add(owner(), third);
    // It still takes the trail to end with the second.
    await Promise.all([other.add(owner(), third), other.add(owner(), event())]);
    await one.add(owner(), second);
    expect((await recorded()).map(({ version }) => version)).toEqual([1, 2, 3, 4]);
    expect(log.lines).toEqual([]);
    await other.add(owner(), event('{"keyed":false}', { key: 'k' }));
    expect(log.lines).toMatchObject([{ level: 'warn', sentence: expect.stringContaining('another body') }]);
    expect(await recorded()).toHaveLength(4);
  });

  it('finds what was recorded although its answer was lost', async () => {
    const one = writer();
    const lost = event();
    await one.add(owner(), event());
    events.losesAnswers = true;
    await expect(one.add(owner(), lost)).rejects.toMatchObject({ code: 'service_unavailable' });
    events.losesAnswers = false;
    await one.add(owner(), lost);
    await one.add(owner(), event());
    expect(await recorded()).toHaveLength(3);
  });

  it('appends together what waits: so many, and so many bytes, in order', async () => {
    const one = writer();
    await one.add(owner(), event());
    events.hold();
    events.appends.length = 0;
    const many = Array.from({ length: 300 }, () => event());
    const large = Array.from({ length: 40 }, (_, index) => event(`{"text":"${'x'.repeat(30_000)}${index}"}`));
    const waiting = [...many, ...large].map((each) => one.add(owner(), each));
    events.letGo();
    await Promise.all(waiting);
    expect(events.appends).toEqual([128, 128, 61, 17, 6]);
    expect((await recorded()).slice(1).map(({ id }) => id)).toEqual([...many, ...large].map(({ id }) => id));
  });

  it('refuses those for whom there is no room, and those who do not wait any more', async () => {
    const one = writer();
    await one.add(owner(), event());
    events.hold();
    const waiting = Array.from({ length: 512 }, (_, index) => one.add(owner(), event(`{"many":${index}}`, { patience: index === 511 ? 1 : 5_000 })));
    await expect(one.add(owner(), event())).rejects.toMatchObject({ code: 'rate_limit_exceeded', details: { retryAfter: 1 } });
    const late = expect(waiting[511]).rejects.toMatchObject({ code: 'service_unavailable' });
    const other = (await services.ask('CreateOrganization', { name: 'Other' })).id;
    const elsewhere = one.add({ environment: ENVIRONMENT, organization: other }, event());
    await new Promise((resolve) => setTimeout(resolve, 5));
    events.letGo();
    await late;
    await Promise.all(waiting.slice(0, 511));
    await elsewhere;
    expect(await recorded()).toHaveLength(512);
  });

  it('keeps no key of a trail that has lost its own', async () => {
    const one = writer();
    await one.add(owner(), event());
    await engines.keys.destroy(`trail.${ENVIRONMENT}-${organization}`);
    await expect(one.add(owner(), event())).rejects.toMatchObject({ code: 'entity_not_found' });
  });

  it('leaves a deleted organization to a job, which takes its key and its rows; a check of all rows finds nothing amiss', async () => {
    const kept = organization;
    const occurred_at = new Date().toISOString();
    const happened = { action: 'a', occurred_at, actor: { id: 'a', type: 'user' }, targets: [], context: { location: '' } };
    const deleted = (await services.ask('CreateOrganization', { name: 'Deleted' })).id;
    for (const organization_id of [kept, deleted])
      for (let version = 0; version < 3; version++)
        await services.ask('CreateAuditLogEvent', { organization_id, event: { ...happened, metadata: { version } } });
    // A full tile.
    const one = writer();
    await Promise.all(Array.from({ length: 253 }, () => one.add({ environment: ENVIRONMENT, organization: deleted }, event())));
    const trees = new TrailTrees(events, rows);
    const tile = () => trees.rows.read({ environment: ENVIRONMENT, organization: deleted }, { level: 0, index: 0 });
    await trees.tiles({ environment: ENVIRONMENT, organization: deleted }).store(0);
    expect(await tile()).not.toBeNull();
    await services.ask('DeleteOrganization', { id: deleted });
    const left = async (id: string) => (await reader.rows.page(ENVIRONMENT, { where: { index: 'organization', values: [id] }, order: 'asc', limit: 300 })).rows;
    await until(async () => (await left(deleted)).length === 256);
    expect(await left(kept)).toHaveLength(3);
    await expect(services.ask('ListAuditLogEvents', { organization_id: deleted, limit: 10 })).rejects.toMatchObject({ code: 'entity_not_found' });

    const keys = new TrailKeys(engines.keys);
    const expired = new ExpiredEvents(reader, {} as never, keys, events, rows);
    const ended = new EndedTrails(reader, keys, expired, trees, events, { add: () => {} } as never);
    const before = await left(kept);
    expect([await ended.sweep(ENVIRONMENT, 0, 2), await ended.sweep(ENVIRONMENT, 0, 500), await ended.sweep(ENVIRONMENT, 0, 500)]).toEqual([2, 254, 0]);
    expect([await left(kept), await left(deleted)]).toEqual([before, []]);
    expect(await tile()).toBeNull();
    const purposes = [kept, deleted].map((id) => `trail.${ENVIRONMENT}-${id}` as const);
    expect([...(await engines.keys.erasedAmong(purposes))]).toEqual([purposes[1]]);
    for await (const difference of services.runtime.differences()) expect(difference).toBeNull();
  });
});
