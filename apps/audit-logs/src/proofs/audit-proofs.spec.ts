import { createHash } from 'node:crypto';
import independent from '@transmute/rfc9162';
import { ListEnvironments } from '#libs/contracts/src/environments/operations';
import { RotateAuditLogKeys } from '#libs/contracts/src/audit-log-proofs/operations';
import { canonicalJson } from '#libs/platform/src/canonical-json';
import { ForwardedClock } from '#libs/testing/src/forwarded-clock';
import { givenSuite, type Caller, type GivenSuite } from '#libs/testing/src/suite';
import { verifyCheckpoint } from '../tree/checkpoint.ts';
import { leafHash } from '../tree/merkle-hash.ts';
import { isConsistent, rootByInclusion } from '../tree/proofs.ts';

const MINUTE = 60_000;

describe('the proofs of an audit trail', () => {
  let suite: GivenSuite;
  let environment: string;
  let stranger: Awaited<ReturnType<GivenSuite['otherEnvironment']>>;
  const clients = new Map<Caller, string>();
  let recorded = 0;
  const clock = new ForwardedClock();
  beforeAll(async () => {
    suite = await givenSuite({ clock });
    environment = (await suite.call(ListEnvironments, {}))[0]!.id;
    stranger = await suite.otherEnvironment();
    for (const caller of [suite, stranger]) clients.set(caller, await suite.clientIdOf(caller));
  });

  const keysOf = async (caller: Caller): Promise<readonly Buffer[]> => {
    const { data } = await caller.get(`/audit_logs/keys?client_id=${clients.get(caller)}`).expect(200);
    return data.map(({ public_key }: { public_key: string }) => Buffer.from(public_key, 'base64'));
  };
  const organization = async (caller: Caller = suite): Promise<string> => (await caller.post('/organizations', { name: 'Acme' }).expect(201)).id;
  const record = async (organization_id: string, count: number, caller: Caller = suite): Promise<void> => {
    for (let left = count; left > 0; left -= 100)
      await Promise.all(
        Array.from({ length: Math.min(left, 100) }, async () => {
          const event = {
            action: 'document.shared',
            occurred_at: new Date(clock.now()).toISOString(),
            actor: { id: 'user_42', type: 'user' },
            targets: [{ id: `document_${(recorded += 1)}`, type: 'document' }],
            context: { location: '192.0.2.1' },
          };
          await caller.post('/audit_logs/events', { organization_id, event }).expect(200);
        }),
      );
  };
  const trailOf = (id: string): string => `/audit_logs/organizations/${id}`;
  /** A checkpoint of so many events, once a minute has passed since the last. */
  const checkpointAt = async (id: string, size: number, caller: Caller = suite) => {
    await caller.eventually(`${trailOf(id)}/checkpoint`, {});
    clock.forward(MINUTE);
    const answer = await caller.eventually(`${trailOf(id)}/checkpoint`, { size });
    const checkpoint = verifyCheckpoint(answer.checkpoint, await keysOf(caller));
    expect(checkpoint).toMatchObject({ size, time: answer.created_at, root: Buffer.from(answer.root_hash, 'base64') });
    return { ...answer, root: Buffer.from(answer.root_hash, 'base64') };
  };
  const buffers = (hashes: readonly string[]): readonly Buffer[] => hashes.map((hash) => Buffer.from(hash, 'base64'));

  it('are those of the tree of all events in the order of their arrival, across tiles', async () => {
    const acme = await organization();
    await suite.get(`${trailOf(acme)}/checkpoint`).expect(404, { code: 'entity_not_found' });
    await record(acme, 3);
    const first = await checkpointAt(acme, 3);
    expect(first).toMatchObject({ object: 'audit_log_checkpoint', organization_id: acme, trail: 'intact' });
    expect(first.checkpoint).toMatch(new RegExp(`^gatehouse/${environment}/${acme}\n3\n`));
    await record(acme, 297);
    const second = await checkpointAt(acme, 300);

    const { data: events } = await suite.get(`/audit_logs/events?organization_id=${acme}&limit=100`).expect(200);
    const [some] = events;
    for (const { id, leaf_index } of [some, events[50], events[99]]) {
      const proof = await suite.get(`${trailOf(acme)}/inclusion?event_id=${id}`).expect(200, { event_id: id, leaf_index, size: 300 });
      const hash = leafHash(proof.leaf_data);
      expect(rootByInclusion(leaf_index, 300, { hash, proof: buffers(proof.hashes) })).toEqual(second.root);
      const path = buffers(proof.hashes).map((each) => new Uint8Array(each));
      expect(await independent.RFC9162.verifyInclusionProof(second.root, hash, { log_id: '', tree_size: 300, leaf_index, inclusion_path: path })).toBe(true);
    }
    // What the leaf says is what the event says.
    const proof = await suite.get(`${trailOf(acme)}/inclusion?event_id=${some.id}`).expect(200);
    const { id, organization_id, received_at, leaf_index: _leaf, object: _object, ...content } = await suite.get(`/audit_logs/events/${some.id}`).expect(200);
    const commitment = createHash('sha256').update(Buffer.from(proof.salt, 'hex')).update(canonicalJson(content)).digest('base64url');
    expect(proof.leaf_data).toBe(canonicalJson({ v: 1, environment, organization_id, id, received_at, commitment }));

    for (const [from, to] of [
      [3, 300],
      [256, 300],
      [1, 257],
      [300, 300],
    ] as const) {
      const { hashes } = await suite.get(`${trailOf(acme)}/consistency?from=${from}&to=${to}`).expect(200, { from, to, organization_id: acme });
      if (from === 3) expect(isConsistent({ size: 3, root: first.root }, { size: 300, root: second.root }, buffers(hashes))).toBe(true);
    }
    await suite.get(`${trailOf(acme)}/consistency?from=3`).expect(200, { from: 3, to: 300 });

    // What was stored of the tree is read by whoever comes next, and says the same.
    await suite.restart();
    const again = await suite.get(`${trailOf(acme)}/inclusion?event_id=${some.id}`).expect(200);
    expect(again).toEqual(proof);
    await suite.get(`${trailOf(acme)}/checkpoint`).expect(200, { size: 300, trail: 'intact', checkpoint: second.checkpoint });
  });

  it('are signed at most once a minute, and never again for the same events', async () => {
    const acme = await organization();
    await record(acme, 1);
    const { checkpoint } = await suite.eventually(`${trailOf(acme)}/checkpoint`, { size: 1 });
    await record(acme, 1);
    const other = await organization();
    await record(other, 1);
    await suite.eventually(`${trailOf(other)}/checkpoint`, { size: 1 });
    await suite.get(`${trailOf(acme)}/checkpoint`).expect(200, { size: 1, checkpoint });
    await checkpointAt(acme, 2);
    await record(other, 1);
    await checkpointAt(other, 2);
    expect((await suite.records('audit_checkpoint.recorded')).filter(({ stream }) => stream.endsWith(acme))).toHaveLength(2);
  });

  it('are refused for what there is not', async () => {
    const [acme, other] = [await organization(), await organization()];
    await record(acme, 2);
    await record(other, 1);
    await checkpointAt(acme, 2);
    const [first, second] = [...(await suite.get(`/audit_logs/events?organization_id=${acme}`).expect(200)).data].sort(
      (one, two) => one.leaf_index - two.leaf_index,
    );
    const inclusion = (id: string, query: string) => suite.get(`${trailOf(id)}/inclusion?${query}`);
    await inclusion(acme, `event_id=${first.id}&size=1`).expect(200, { size: 1, hashes: [] });
    await inclusion(acme, `event_id=${second.id}&size=1`).expect(422, { errors: [{ field: 'size', code: 'out_of_range' }] });
    await inclusion(acme, `event_id=${first.id}&size=3`).expect(422, {
      errors: [{ field: 'size', code: 'out_of_range', message: expect.stringContaining('has lost some') }],
    });
    for (const size of ['0', '-1', 'x', '1.5']) await inclusion(acme, `event_id=${first.id}&size=${size}`).expect(422, { errors: [{ field: 'size' }] });
    await inclusion(acme, '').expect(422, { errors: [{ field: 'event_id', code: 'required' }] });
    await inclusion(other, `event_id=${first.id}`).expect(404, { entity_id: first.id });
    await inclusion(acme, 'event_id=audit_event_01J0000000000000000000000A').expect(404);
    const consistency = (query: string) => suite.get(`${trailOf(acme)}/consistency?${query}`);
    await consistency('from=1&to=3').expect(422, { errors: [{ field: 'to', code: 'out_of_range' }] });
    await consistency('from=2&to=1').expect(422, { errors: [{ field: 'from', code: 'out_of_range' }] });
    await consistency('from=0').expect(422, { errors: [{ field: 'from' }] });
    await consistency(`from=1&to=${Number.MAX_SAFE_INTEGER}`).expect(422, {
      errors: [{ field: 'to', code: 'out_of_range', message: expect.stringContaining('has lost some') }],
    });
    await consistency('from=1&to=9007199254740993').expect(422, { errors: [{ field: 'to', code: 'out_of_range' }] });
    await consistency('').expect(422, { errors: [{ field: 'from', code: 'required' }] });
    const nobody = trailOf('org_01J0000000000000000000000A');
    for (const path of ['checkpoint', `inclusion?event_id=${first.id}`, 'consistency?from=1'])
      await suite.get(`${nobody}/${path}`).expect(404, { code: 'entity_not_found' });
    for (const path of ['checkpoint', `inclusion?event_id=${first.id}`, 'consistency?from=1']) await stranger.get(`${trailOf(acme)}/${path}`).expect(404);
    await suite.delete(`/organizations/${acme}`).expect(202);
    for (const path of ['checkpoint', `inclusion?event_id=${first.id}`, 'consistency?from=1']) await suite.get(`${trailOf(acme)}/${path}`).expect(404);
  });

  it('are verified by keys that anybody may have, of each environment its own, and by none of them less when another signs', async () => {
    const caller = stranger;
    const client = clients.get(caller)!;
    const open = await fetch(`${suite.url}/audit_logs/keys?client_id=${client}`);
    expect([open.status, open.headers.get('cache-control')]).toEqual([200, 'public, max-age=300']);
    const { data } = (await open.json()) as { readonly data: readonly { readonly public_key: string }[] };
    expect(data).toEqual([
      { object: 'audit_log_key', algorithm: 'Ed25519', public_key: expect.stringMatching(/^[\w+/]{43}=$/), signs_from: expect.any(String), signs_until: null },
    ]);
    expect(await keysOf(suite)).not.toContainEqual(Buffer.from(data[0]!.public_key, 'base64'));
    await suite.get('/audit_logs/keys?client_id=client_nobody').expect(400, { error: 'invalid_client' });

    const acme = await organization(caller);
    await record(acme, 1, caller);
    const before = await checkpointAt(acme, 1, caller);
    const next = await suite.call(RotateAuditLogKeys, {}, { environment: caller.id, deadline: clock.now() + MINUTE });
    const rotated = await caller.eventually(`/audit_logs/keys?client_id=${client}`, { data: [{ ...data[0], signs_until: next.signs_from }, next] });
    expect(rotated.data).toHaveLength(2);
    await record(acme, 1, caller);
    const after = await checkpointAt(acme, 2, caller);
    const [older, newer] = await keysOf(caller);
    expect([verifyCheckpoint(before.checkpoint, [older!]), verifyCheckpoint(before.checkpoint, [newer!])]).toEqual([expect.anything(), null]);
    expect([verifyCheckpoint(after.checkpoint, [older!]), verifyCheckpoint(after.checkpoint, [newer!])]).toEqual([null, expect.anything()]);
    expect(JSON.stringify(await suite.records('audit_key.created'))).not.toContain('MC4CAQAwBQYDK2Vw');
  });
});
