import type { EventStore } from '#libs/event-sourcing/src/log/event-store';
import { ReadModels, type Table, type TableDefinition } from '#libs/read-models/src/read-models';
import { ManyReplicas } from '#libs/platform/src/replicas';
import type { Engines } from '#libs/runtime/src/engines';
import { ENVIRONMENT, givenServices, type GivenServices } from '#libs/testing/src/given-services';
import { eventually } from '#libs/testing/src/until';

/** Rows of API keys that can be lost on their way. */
class LostRows extends ReadModels {
  isLosing = false;

  constructor(private readonly rows: ReadModels) {
    super();
  }

  table<Row>(definition: TableDefinition<Row>): Table<Row> {
    const table = this.rows.table(definition);
    if (!definition.name.startsWith('api_keys')) return table;
    const write: Table<Row>['write'] = async (...given) => {
      if (this.isLosing) throw new Error('The rows are away.');
      await table.write(...given);
    };
    return new Proxy(table, { get: (target, name) => (name === 'write' ? write : Reflect.get(target, name)) });
  }

  drop(table: string): Promise<void> {
    return this.rows.drop(table);
  }
}

describe('the validation of an API key', () => {
  let services: GivenServices;
  /** Another process on the same engines. */
  let replica: GivenServices;
  let rows: LostRows;
  const readings: string[] = [];
  const lag = { isOver: Promise.resolve() };
  beforeAll(async () => {
    let shared: Engines | undefined;
    services = await givenServices((engines) => {
      shared = { ...engines, readModels: (rows = new LostRows(engines.readModels)), replicas: new ManyReplicas() };
      return { ...shared, events: counted(shared.events, readings) };
    });
    replica = await givenServices(() => ({ ...shared!, replicas: new ManyReplicas(), events: lagging(shared!.events, lag) }));
  });
  afterAll(async () => {
    rows.isLosing = false;
    await replica.close();
    await services.close();
  });
  /** What is read of the log meanwhile, each once. */
  const readIn = async (work: () => Promise<unknown>): Promise<readonly string[]> => {
    readings.length = 0;
    await work();
    return [...new Set(readings.filter((reading) => !reading.startsWith('subscribe')))];
  };

  const created = async (fields: object = {}) => {
    const { id: organization_id } = await services.ask('CreateOrganization', { name: 'Acme' });
    return { organization_id, ...(await services.ask('CreateOrganizationApiKey', { organization_id, name: 'Build server', ...fields })) };
  };
  const createdForUser = async () => {
    const { id: organization_id } = await services.ask('CreateOrganization', { name: 'Acme' });
    const { id: user_id } = await services.ask('CreateUser', { email: `${organization_id}@acme.test` });
    const { id: membership } = await services.ask('CreateOrganizationMembership', { organization_id, user_id });
    return { organization_id, user_id, membership, ...(await services.ask('CreateUserApiKey', { organization_id, user_id, name: 'Laptop' })) };
  };
  type Asked = { readonly [field: string]: unknown };
  const validated = async ({ value }: Asked, asked = services, timeoutMs?: number) => (await asked.ask('ValidateApiKey', { value }, timeoutMs))['api_key'];

  it('asks the log for nothing where nobody has such a key, for its stream at first, and then for its end alone', async () => {
    const key = await created();
    await validated(key);
    const askUnknown = async (): Promise<void> => {
      for (let index = 0; index < 100; index++) expect(await validated({ value: `sk_unknown_${index}` })).toBeNull();
    };
    expect(await readIn(askUnknown)).toEqual([]);
    const askKnown = async (fields: object = {}): Promise<void> => expect(await validated(key)).toMatchObject({ id: key.id, ...fields });
    for (let index = 0; index < 3; index++) expect(await readIn(askKnown)).toEqual(['end']);
    await services.ask('ExpireApiKey', { id: key.id, expires_at: '2099-01-01T00:00:00.000Z' });
    const askChanged = (): Promise<void> => askKnown({ expires_at: '2099-01-01T00:00:00.000Z' });
    expect(await readIn(askChanged)).toEqual(['end', expect.stringContaining(key.id)]);
    expect(await readIn(askChanged)).toEqual(['end']);
  });

  it('answers what it answered first, but for the time, whatever the key is called', async () => {
    const key = await created({ name: '"last_used_at":null,"x":"\\' });
    const first = (await validated(key)) as { readonly name: string; readonly last_used_at: string };
    const second = await validated(key);
    expect(first).toEqual({ ...first, name: '"last_used_at":null,"x":"\\', last_used_at: expect.stringMatching(/^\d{4}-.*Z$/) });
    expect(second).toEqual({ ...first, last_used_at: expect.any(String) });
  });

  it('knows of a revocation and of an expiry whose rows are late', async () => {
    const [revoked, expired, kept] = [await created(), await created(), await created()];
    for (const key of [revoked, expired, kept]) expect(await validated(key)).toMatchObject({ id: key.id });
    rows.isLosing = true;
    await services.ask('DeleteApiKey', { id: revoked.id });
    await services.ask('ExpireApiKey', { id: expired.id });
    expect(await validated(revoked)).toBeNull();
    expect(await validated(expired)).toBeNull();
    expect(await validated(kept)).toMatchObject({ id: kept.id });
    rows.isLosing = false;
  });

  it('leaves no time of the last use of a key that ended, whichever process knew of it', async () => {
    const [revoked, kept] = [await created(), await created()];
    for (const asked of [services, replica]) for (const key of [revoked, kept]) await validated(key, asked);
    const table = rows.table<string>({ name: 'stamps', indexes: [], guard: 'time', rebuildable: false });
    const stored = async (): Promise<readonly boolean[]> =>
      (
        await table.getMany(
          ENVIRONMENT,
          [revoked, kept].map(({ id }) => `${id} api_key.last_used_at`),
        )
      ).map((row) => row !== null);
    await eventually(async () => expect(await stored()).toEqual([true, true]));
    await services.ask('DeleteApiKey', { id: revoked.id });
    await eventually(async () => expect(await stored()).toEqual([false, true]));
  });

  it.each<readonly [string, (of: Asked) => Promise<unknown>]>([
    ['the key', ({ id }) => services.ask('DeleteApiKey', { id })],
    ['its organization', ({ organization_id }) => services.ask('DeleteOrganization', { id: organization_id })],
    ['its user', ({ user_id }) => services.ask('DeleteUser', { id: user_id })],
    ['its membership', ({ membership }) => services.ask('DeleteOrganizationMembership', { id: membership })],
    ['the activity of its membership', ({ membership }) => services.ask('DeactivateOrganizationMembership', { id: membership })],
  ])('is null in another process with the next question when %s ended, and refused until that process knows', async (_, end) => {
    const key = await createdForUser();
    for (const asked of [services, replica]) expect(await validated(key, asked)).toMatchObject({ id: key.id });
    let goOn = (): void => {};
    lag.isOver = new Promise((resolve) => (goOn = resolve));
    await end(key);
    expect(await validated(key)).toBeNull();
    await expect(validated(key, replica, 100)).rejects.toMatchObject({ code: 'service_unavailable' });
    const waiting = validated(key, replica);
    goOn();
    expect(await waiting).toBeNull();
    expect(await validated(key, replica)).toBeNull();
  });
});

/** Brings what was recorded as soon as it may. */
function lagging(events: EventStore, lag: { readonly isOver: Promise<void> }): EventStore {
  const subscribe: EventStore['subscribe'] = async function* (...given) {
    for await (const batch of events.subscribe(...given)) {
      await lag.isOver;
      yield batch;
    }
  };
  return new Proxy(events, {
    get: (target, name) => {
      const found: unknown = name === 'subscribe' ? subscribe : Reflect.get(target, name);
      return typeof found === 'function' ? (found.bind(target) as unknown) : found;
    },
  });
}

/** Notes what is read, and of which stream. */
function counted(events: EventStore, readings: string[]): EventStore {
  return new Proxy(events, {
    get: (target, name) => {
      const found: unknown = Reflect.get(target, name);
      if (name === 'headAtHand') readings.push('end');
      if (typeof found !== 'function') return found;
      return (...given: readonly unknown[]): unknown => {
        if (name === 'head') readings.push('end');
        if (['read', 'readBackwards', 'last', 'subscribe'].includes(String(name))) readings.push(`${String(name)} ${String(given[0])}`);
        return (found as (...given: readonly unknown[]) => unknown).apply(target, [...given]);
      };
    },
  });
}
