import { createHash } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import fastify from 'fastify';
import { Blobs, type Blob, type BlobContent } from '#libs/blobs/src/blobs';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import type { EventStore, RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import { DomainError, unavailable } from '#libs/platform/src/domain-error';
import { Readiness } from '#libs/platform/src/readiness';
import { ManyReplicas } from '#libs/platform/src/replicas';
import type { Engines } from '#libs/runtime/src/engines';
import { ForwardedClock } from '#libs/testing/src/forwarded-clock';
import { ENVIRONMENT, givenServices, type GivenServices } from '#libs/testing/src/given-services';
import { eventually, until } from '#libs/testing/src/until';
import { auditExportDecider } from '../domain/audit-export.decider.ts';
import { DownloadFace } from './download-face.ts';
import { ExpiredExports } from './expired-exports.ts';
import { ExportBuilds } from './export-builds.ts';
import { wholeOnly } from './export-files.ts';

/** A store of files that does otherwise than it should, as often as it is told. */
class FaultyBlobs extends Blobs {
  faults: ((name: string, content: AsyncIterable<Uint8Array>) => Promise<Blob>)[] = [];
  /** Ids of exports whose files are kept waiting. */
  readonly held = new Set<string>();
  readonly ended = new Set<string>();
  puts = 0;
  gets = 0;
  /** The beginning of names that cannot be removed. */
  unremovable: string | null = null;
  /** Whether others than this process can reach it. */
  isOutside = true;

  constructor(private readonly blobs: Blobs) {
    super();
  }

  override async put(name: string, content: AsyncIterable<Uint8Array>): Promise<Blob> {
    this.puts += 1;
    while ([...this.held].some((id) => name.includes(id))) await pause(10);
    const fault = this.faults.shift();
    return fault === undefined ? this.blobs.put(name, content) : fault(name, content);
  }

  override get(name: string): Promise<BlobContent | null> {
    this.gets += 1;
    return this.blobs.get(name);
  }

  override stat(name: string): Promise<Blob | null> {
    return this.blobs.stat(name);
  }

  override async remove(name: string): Promise<void> {
    if (this.unremovable !== null && name.startsWith(this.unremovable)) throw unavailable('It stays.');
    return this.blobs.remove(name);
  }

  override endUnfinished(folder: string): Promise<void> {
    this.ended.add(folder);
    return this.blobs.endUnfinished(folder);
  }

  override list(folder: string): AsyncIterable<Blob> {
    return this.blobs.list(folder);
  }

  override async downloadAddress(name: string): Promise<string | null> {
    return this.isOutside ? `https://files.test/${name}` : null;
  }

  override close(): Promise<void> {
    return this.blobs.close();
  }

  /** As an attempt does that ends with its process. */
  async leave(name: string): Promise<void> {
    await this.blobs.put(name, altered([Buffer.from('left')]));
  }

  fill(times: number): void {
    const full = async (_: string, content: AsyncIterable<Uint8Array>): Promise<never> => {
      await content[Symbol.asyncIterator]().next();
      throw new DomainError('unavailable', 'storage_full', 'full');
    };
    this.faults = Array.from({ length: times }, () => full);
  }

  /** Takes everything, and keeps something else. */
  lie(times: number): void {
    this.faults = Array.from({ length: times }, () => (name, content) => this.blobs.put(name, altered(content)));
  }

  beAway(times: number): void {
    this.faults = Array.from({ length: times }, () => () => Promise.reject(unavailable('away')));
  }
}

async function* altered(content: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const piece of content) yield piece.map((byte, at) => (at === 0 ? byte ^ 1 : byte));
}

async function* pieces(content: Iterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield* content;
}

describe('exports of audit trails whose files are stored badly, or not at all', () => {
  const clock = new ForwardedClock();
  let services: GivenServices;
  let blobs: FaultyBlobs;
  let events: EventStore;
  let engines: Engines;
  /** How often each process has asked for the lease of exports. */
  const renewals = new Map<string, number>();
  let isAltered = false;
  /** How many records of a trail were asked for at once. */
  let slices: number[] = [];
  beforeAll(async () => {
    services = await givenServices((embedded) => {
      ({ events } = embedded);
      const readBackwards = events.readBackwards.bind(events);
      const alteredRecord = (record: RecordedEvent): RecordedEvent => {
        const data = record.data as { readonly sealed: string };
        return { ...record, data: { ...data, sealed: `${data.sealed.slice(0, -4)}AAAA` } };
      };
      events.readBackwards = async (stream, ...more) => {
        const records = await readBackwards(stream, ...more);
        if (stream.startsWith('audit_trail-')) slices.push(more[0]);
        return isAltered && stream.startsWith('audit_trail-') ? records.map(alteredRecord) : records;
      };
      const { shortLived } = embedded;
      const lease = shortLived.lease.bind(shortLived);
      shortLived.lease = async (name, holder, ...more) => {
        if (name === 'audit.exports') renewals.set(holder, (renewals.get(holder) ?? 0) + 1);
        return lease(name, holder, ...more);
      };
      return (engines = { ...embedded, replicas: new ManyReplicas(), blobs: (blobs = new FaultyBlobs(embedded.blobs)) });
    }, clock);
  });
  afterAll(() => services.close());
  afterEach(() => {
    blobs.faults = [];
    blobs.held.clear();
    blobs.isOutside = true;
    blobs.unremovable = null;
    isAltered = false;
  });

  const record = async (organization_id: string, action = 'a'): Promise<void> => {
    const event = { action, occurred_at: new Date(clock.now()).toISOString(), actor: { id: 'a', type: 'u' }, targets: [], context: { location: '' } };
    await services.ask('CreateAuditLogEvent', { organization_id, event });
  };
  const organization = async (): Promise<string> => {
    const { id } = await services.ask('CreateOrganization', { name: 'Acme' });
    await record(id);
    return id;
  };
  const range = () => ({ range_start: new Date(clock.now() - 60_000).toISOString(), range_end: new Date(clock.now() + 60_000).toISOString() });
  const ask = async (organization_id: string) => (await services.ask('CreateAuditLogExport', { organization_id, ...range() })).id;
  const over = (id: string) =>
    eventually(async () => {
      const made = await services.ask('GetAuditLogExport', { id });
      // What the pauses between tries come to.
      if (made['state'] === 'pending') clock.forward(15_000);
      expect(made['state']).not.toBe('pending');
      return made;
    });
  const stored = async (id: string): Promise<readonly string[]> => {
    const names: string[] = [];
    for await (const { name } of blobs.list('audit_exports')) if (name.includes(id)) names.push(name);
    return names;
  };

  it.each(['ready', 'error'])('leave nothing of attempts that ended with their process, once they are %s', async (state) => {
    const acme = await organization();
    blobs.held.add('audit_log_export');
    const id = await ask(acme);
    const folder = `audit_exports/${ENVIRONMENT}/${id}`;
    const neighbour = `${folder}a/01J.file`;
    for (const name of [`${folder}/01J.file`, `${folder}/01J.proof`, neighbour]) await blobs.leave(name);
    if (state === 'error') blobs.fill(100);
    blobs.held.clear();
    expect(await over(id)).toMatchObject({ state });
    await until(async () => (await stored(`${id}/`)).length === (state === 'ready' ? 2 : 0));
    expect((await stored(`${id}/`)).filter((name) => name.includes('01J.'))).toEqual([]);
    expect(await stored(`${id}a/`)).toEqual([neighbour]);
    // Uploads that never ended as well.
    expect(blobs.ended).toContain(folder);
  });

  it('are ready once the store takes them', async () => {
    const acme = await organization();
    for (const fail of [() => blobs.beAway(5), () => blobs.fill(2), () => blobs.lie(3)]) {
      fail();
      const made = await over(await ask(acme));
      expect(made).toMatchObject({ state: 'ready', error: null });
      const names = [made['url'], made['proof_url']].map((url) => String(url).slice('https://files.test/'.length));
      expect(names.map((name) => name.split('.').at(-1))).toEqual(['file', 'proof']);
      expect(await stored(made.id)).toEqual(expect.arrayContaining(names));
    }
  });

  it.each<[string, () => void]>([
    ['storage_full', () => blobs.fill(100)],
    ['storage_unavailable', () => blobs.beAway(100)],
    ['storage_unavailable', () => blobs.lie(100)],
  ])('fail with %s after a few tries, and leave nothing', async (code, fail) => {
    fail();
    const acme = await organization();
    const before = blobs.puts;
    const id = await ask(acme);
    expect(await over(id)).toMatchObject({ state: 'error', url: null, proof_url: null, expires_at: null, error: { code, message: expect.any(String) } });
    expect(await stored(id)).toEqual([]);
    expect(blobs.puts - before).toBeGreaterThanOrEqual(2 * 5);
    // It is over, and the next one has its own chance.
    blobs.faults = [];
    expect(await over(await ask(acme))).toMatchObject({ state: 'ready' });
  });

  it('are refused without a word of what they were where the store has lost them, or has others', async () => {
    blobs.isOutside = false;
    services.get(Readiness).start();
    const server = fastify();
    await services.get(DownloadFace).mount(server);
    const origin = await server.listen({ port: 0, host: '127.0.0.1' });
    try {
      const made = await over(await ask(await organization()));
      const { pathname, search } = new URL(String(made['url']));
      const download = async (method: 'GET' | 'HEAD', headers: Readonly<Record<string, string>> = {}) => {
        const answer = await fetch(origin + pathname + search, { method, headers });
        await answer.arrayBuffer();
        return [answer.status, ['content-disposition', 'etag', 'accept-ranges', 'content-range'].filter((name) => answer.headers.has(name))];
      };
      const whole = [200, ['content-disposition', 'etag', 'accept-ranges']];
      expect(await download('GET')).toEqual(whole);
      const { gets } = blobs;
      expect(await download('HEAD')).toEqual(whole);
      // Nobody reads what nobody is sent.
      expect(blobs.gets).toBe(gets);
      const [name] = (await stored(made.id)).filter((each) => each.endsWith('.file'));
      expect((await download('GET', { range: 'bytes=0-1' }))[0]).toBe(206);
      const content: Uint8Array[] = [];
      for await (const piece of (await blobs.get(name!))!.bytes) content.push(piece);
      // As long as it was.
      blobs.lie(1);
      await blobs.put(name!, pieces(content));
      expect([await download('GET'), await download('GET', { range: 'bytes=0-1' })]).toEqual([
        [503, []],
        [503, []],
      ]);
      await blobs.put(name!, pieces(content));
      expect([await download('GET'), (await download('GET', { range: 'bytes=0-1' }))[0]]).toEqual([whole, 206]);
      await blobs.leave(name!);
      expect([await download('GET'), await download('HEAD'), await download('GET', { range: 'bytes=0-1' })]).toEqual([
        [503, []],
        [503, []],
        [503, []],
      ]);
      await blobs.remove(name!);
      expect([await download('GET'), await download('HEAD'), await download('GET', { range: 'bytes=0-1' })]).toEqual([
        [404, []],
        [404, []],
        [404, []],
      ]);
    } finally {
      await server.close();
    }
  });

  it('are cut off before their end where they are not what was stored', async () => {
    const stored = { bytes: 3, hash: createHash('sha256').update('abc').digest('base64url') };
    const sent = async (...texts: readonly string[]): Promise<string> => {
      let text = '';
      const all = wholeOnly(pieces(texts.map((each) => Buffer.from(each))), stored, () => new Error('altered'));
      const error = await (async () => {
        for await (const piece of all) text += Buffer.from(piece).toString();
        return null;
      })().catch((reason: Error) => reason.message);
      return `${text} ${error ?? 'whole'}`;
    };
    expect([await sent('a', 'b', 'c'), await sent('a', 'b', 'x'), await sent('x', 'b', 'c'), await sent('abx')]).toEqual([
      'abc whole',
      'ab altered',
      'xb altered',
      ' altered',
    ]);
  });

  it('fail where the file would be larger than a store takes, at once, and leave nothing', async () => {
    const builds = services.get(ExportBuilds);
    const largest = builds.largestBytes;
    try {
      const acme = await organization();
      builds.largestBytes = 50;
      const before = blobs.puts;
      const id = await ask(acme);
      expect(await over(id)).toMatchObject({ state: 'error', error: { code: 'too_large', message: expect.stringContaining('64 GiB') } });
      expect([await stored(id), blobs.puts - before]).toEqual([[], 2]);
      builds.largestBytes = 100_000;
      expect(await over(await ask(acme))).toMatchObject({ state: 'ready' });
    } finally {
      builds.largestBytes = largest;
    }
  });

  it('are made by one process however long the store takes, whose lease is prolonged meanwhile', async () => {
    const replica = await givenServices(() => ({ ...engines, replicas: new ManyReplicas() }), clock);
    try {
      const acme = await organization();
      const before = blobs.puts;
      blobs.held.add('audit_log_export');
      const id = await ask(acme);
      await until(() => blobs.puts === before + 2);
      renewals.clear();
      // A lease that is not asked for again is another's after three of these.
      await until(() => renewals.size === 2 && [...renewals.values()].every((asked) => asked >= 5));
      expect(blobs.puts).toBe(before + 2);
      blobs.held.clear();
      expect(await over(id)).toMatchObject({ state: 'ready' });
      expect([blobs.puts, await stored(id)]).toEqual([before + 2, [expect.stringContaining('.file'), expect.stringContaining('.proof')]]);
    } finally {
      await replica.close();
    }
  });

  it('fail at once where an event cannot be read any more', async () => {
    const acme = await organization();
    isAltered = true;
    const id = await ask(acme);
    expect(await over(id)).toMatchObject({ state: 'error', error: { code: 'event_unreadable' } });
    expect(await stored(id)).toEqual([]);
  });

  it('of one organization wait for nobody but themselves, ten at a time', async () => {
    const [busy, other] = [await organization(), await organization()];
    const asked: string[] = [];
    for (let index = 0; index < 10; index++) {
      const id = await ask(busy);
      asked.push(id);
      blobs.held.add(id);
    }
    await expect(ask(busy)).rejects.toMatchObject({ kind: 'limited', code: 'rate_limit_exceeded' });
    // However many of the other organization wait, it has its turn.
    for (let index = 0; index < 3; index++) expect(await over(await ask(other))).toMatchObject({ state: 'ready' });
    blobs.held.clear();
    for (const made of await Promise.all(asked.map(over))) expect(made).toMatchObject({ state: 'ready' });
    expect(await over(await ask(busy))).toMatchObject({ state: 'ready' });
  });

  it('leave nothing of an organization that is deleted before they are made, also where an attempt ended with its process', async () => {
    const acme = await organization();
    blobs.held.add('audit_log_export');
    const before = blobs.puts;
    const id = await ask(acme);
    await until(() => blobs.puts === before + 2);
    await blobs.leave(`audit_exports/${ENVIRONMENT}/${id}/01J.file`);
    await services.ask('DeleteOrganization', { id: acme });
    // Also while one is being made, whose process may end as well.
    await until(async () => (await stored(id)).length === 0);
    blobs.held.clear();
    const state = async () => (await services.get(Repository).load(auditExportDecider, ENVIRONMENT, id))?.failure;
    await until(async () => (await state()) === 'organization_deleted');
    await until(async () => (await stored(id)).length === 0);
  });

  it('leave nothing of what the store did not let go, once it does', async () => {
    const acme = await organization();
    blobs.lie(100);
    blobs.unremovable = `audit_exports/${ENVIRONMENT}/`;
    const id = await ask(acme);
    expect(await over(id)).toMatchObject({ state: 'error', error: { code: 'storage_unavailable' } });
    expect((await stored(id)).length).toBeGreaterThan(2);
    blobs.unremovable = null;
    await until(async () => {
      clock.forward(60_000);
      return (await stored(id)).length === 0;
    });
  });

  it('go when their time is over, whatever cannot be removed of others', async () => {
    const [one, other] = [await over(await ask(await organization())), await over(await ask(await organization()))];
    blobs.unremovable = `audit_exports/${ENVIRONMENT}/${one.id}/`;
    clock.forward(7 * 86_400_000);
    const sweep = () => services.get(ExpiredExports).sweep(ENVIRONMENT, clock.now(), 100);
    // Rows come a moment after what they tell of.
    await eventually(async () => {
      await expect(sweep()).rejects.toThrow('It stays.');
      expect([(await stored(one.id)).length, await stored(other.id)]).toEqual([2, []]);
    });
    blobs.unremovable = null;
    await sweep();
    expect(await stored(one.id)).toEqual([]);
  });

  it('have nothing that retention has ended while they were made', async () => {
    const acme = await organization();
    await services.ask('SetAuditLogsRetention', { id: acme, retention_period_in_days: 365 });
    await record(acme, 'old');
    clock.forward(40 * 86_400_000);
    await record(acme, 'young');
    const { range_end } = range();
    const asked = { organization_id: acme, range_start: new Date(clock.now() - 50 * 86_400_000).toISOString(), range_end };
    const textOf = async (id: string): Promise<string> => {
      const [name] = (await stored(`${id}/`)).filter((each) => each.endsWith('.file'));
      const content: Uint8Array[] = [];
      for await (const piece of (await blobs.get(name!))!.bytes) content.push(piece);
      return Buffer.concat(content).toString();
    };
    const whole = await over((await services.ask('CreateAuditLogExport', asked)).id);
    expect(await textOf(whole.id)).toMatch(/,old,[^]*,young,/);
    blobs.held.add('audit_log_export');
    const before = blobs.puts;
    const { id } = await services.ask('CreateAuditLogExport', asked);
    await until(() => blobs.puts === before + 2);
    await services.ask('SetAuditLogsRetention', { id: acme, retention_period_in_days: 30 });
    blobs.held.clear();
    expect(await over(id)).toMatchObject({ state: 'ready' });
    const text = await textOf(id);
    expect([text.includes(',old,'), text.includes(',young,')]).toEqual([false, true]);
    // A file that was made is the customer's.
    expect(await textOf(whole.id)).toContain(',old,');
  });

  it('have their share of a process in which others have much to do', async () => {
    const acme = await organization();
    await Promise.all(Array.from({ length: 300 }, (_, index) => record(acme, `a${index}`)));
    let isBusy = true;
    const longTurn = (): void => {
      for (const end = performance.now() + 20; performance.now() < end;);
      if (isBusy) setImmediate(longTurn);
    };
    longTurn();
    try {
      slices = [];
      await over(await ask(acme));
    } finally {
      isBusy = false;
    }
    expect(slices).toContain(128);
  });

  it('are asked for together and are not more than ten', async () => {
    const acme = await organization();
    blobs.held.add('audit_log_export');
    const answers = await Promise.allSettled(Array.from({ length: 14 }, () => ask(acme)));
    expect(answers.map(({ status }) => status).sort()).toEqual([...Array<string>(10).fill('fulfilled'), ...Array<string>(4).fill('rejected')]);
  });
});
