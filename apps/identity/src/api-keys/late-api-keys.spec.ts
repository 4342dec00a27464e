import type { EventStore } from '#libs/event-sourcing/src/log/event-store';
import { ReadModels, type Table, type TableDefinition } from '#libs/read-models/src/read-models';
import { givenServices, type GivenServices } from '#libs/testing/src/given-services';

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
  let rows: LostRows;
  const readings: string[] = [];
  beforeAll(async () => {
    services = await givenServices((engines) => ({
      ...engines,
      readModels: (rows = new LostRows(engines.readModels)),
      events: counted(engines.events, readings),
    }));
  });
  afterAll(async () => {
    rows.isLosing = false;
    await services.close();
  });

  const created = async () => {
    const { id: organization_id } = await services.ask('CreateOrganization', { name: 'Acme' });
    return services.ask('CreateOrganizationApiKey', { organization_id, name: 'Build server' });
  };
  const validated = async ({ value }: { readonly [field: string]: unknown }) => (await services.ask('ValidateApiKey', { value }))['api_key'];

  it('asks the log for nothing where nobody has such a key, and for one stream where somebody has', async () => {
    const key = await created();
    const ofKeys = () => readings.filter((reading) => !reading.startsWith('subscribe'));
    await validated(key);
    readings.length = 0;
    for (let index = 0; index < 100; index++) expect(await validated({ value: `sk_unknown_${index}` })).toBeNull();
    expect(ofKeys()).toEqual([]);
    expect(await validated(key)).toMatchObject({ id: key.id });
    expect(ofKeys()).toEqual([expect.stringContaining(key.id)]);
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
  });
});

/** Notes what is read, and of which stream. */
function counted(events: EventStore, readings: string[]): EventStore {
  return new Proxy(events, {
    get: (target, name) => {
      const found: unknown = Reflect.get(target, name);
      if (typeof found !== 'function') return found;
      return (...given: readonly unknown[]): unknown => {
        if (['read', 'readBackwards', 'last', 'head', 'subscribe'].includes(String(name))) readings.push(`${String(name)} ${String(given[0])}`);
        return (found as (...given: readonly unknown[]) => unknown).apply(target, [...given]);
      };
    },
  });
}
