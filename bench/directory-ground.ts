import { createWriteStream, openAsBlob } from 'node:fs';
import { once } from 'node:events';
import { finished } from 'node:stream/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { Pool } from 'undici';
import { inTurns } from '#libs/platform/src/in-turns';
import { residentMegabytes } from './processor.ts';
import { KEY, type Suite } from './suite.ts';

const CONNECTIONS = 32;
const POLL = 500;

/** A directory as its product knows it. */
export interface SyncedDirectory {
  readonly id: string;
  readonly token: string;
  /** Verified in its organization. */
  readonly domain: string;
}

export type Follows = 'off' | 'memberships_and_roles';

/** Each of an organization of its own. */
export function directories(suite: Suite, amount: number, follows: Follows): Promise<readonly SyncedDirectory[]> {
  return inTurns(
    Array.from({ length: amount }, (_, index) => index),
    CONNECTIONS,
    async (index) => {
      const domain = `${follows.replaceAll('_', '-')}-${index}.test`;
      const { id: organization_id } = await named(suite.post('/organizations', { name: `Bench ${index}`, domain_data: [{ domain, state: 'verified' }] }));
      const { id } = await named(suite.post('/admin/directories', { organization_id, type: 'okta scim v2.0', name: `Bench ${index}`, policy: { follows } }));
      const { token } = (await suite.post(`/admin/directories/${id}/tokens`, {})) as { readonly token: string };
      return { id, token, domain };
    },
  );
}

/** Answers to one who asks as a product does: `fetch` would take as much of the processor as the answer. */
export class ScimClient {
  private readonly pool: Pool;

  constructor(url: string) {
    this.pool = new Pool(url, { connections: CONNECTIONS, headersTimeout: 60_000 });
  }

  /** @throws Error where it is refused */
  async ask<Answer>(method: 'GET' | 'POST' | 'PUT' | 'PATCH', { id, token }: SyncedDirectory, path: string, content?: object): Promise<Answer> {
    const { statusCode, body } = await this.pool.request({
      method,
      path: `/scim/v2/${id}${path}`,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/scim+json' },
      ...(content !== undefined && { body: JSON.stringify(content) }),
    });
    const text = await body.text();
    if (statusCode >= 300) throw new Error(`${method} ${path} answered ${statusCode}: ${text}`);
    return (text === '' ? null : JSON.parse(text)) as Answer;
  }

  /** The ids of so many new people. */
  people(directory: SyncedDirectory, amount: number): Promise<readonly string[]> {
    return inTurns(
      Array.from({ length: amount }, (_, index) => index),
      CONNECTIONS,
      async (index) => (await named(this.ask('POST', directory, '/Users', personOf(directory, index)))).id,
    );
  }

  close(): Promise<void> {
    return this.pool.close();
  }
}

export function membersOf(ids: readonly string[]): readonly { readonly value: string }[] {
  return ids.map((value) => ({ value }));
}

/** A listing of so many people as lines of JSON; of those whom `isChanged` names it says another title. */
export async function writeListing(path: string, people: number, isChanged: (index: number) => boolean): Promise<void> {
  const file = createWriteStream(path);
  for (let index = 0; index < people; index++) {
    const email = `person-${index}@listed.test`;
    const person = {
      ...{ type: 'user', id: `e-${index}`, email, username: email, first_name: 'Person', last_name: `Number ${index}`, name: `Person Number ${index}` },
      ...{ job_title: isChanged(index) ? 'Director' : 'Engineer', department: 'Research', employee_number: String(index) },
    };
    if (!file.write(`${JSON.stringify(person)}\n`)) await once(file, 'drain');
  }
  file.end();
  await finished(file);
}

export interface CarriedOut {
  readonly milliseconds: number;
  readonly users: { readonly created: number; readonly updated: number; readonly unchanged: number };
  /** The most that was seen beyond what there was before. */
  readonly more: { readonly own: number; readonly all: number };
}

/** Sends a listing and waits until it is carried out. @throws Error where it is not */
export async function carriedOut(suite: Suite, { id }: SyncedDirectory, path: string): Promise<CarriedOut> {
  const before = await residentMegabytes(suite.pid);
  let more = { own: 0, all: 0 };
  const began = performance.now();
  const answer = await fetch(`${suite.url}/admin/directories/${id}/snapshot`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/x-ndjson' },
    body: await openAsBlob(path),
  });
  if (answer.status !== 202) throw new Error(`The listing was answered ${answer.status}: ${await answer.text()}`);
  const run = (await answer.json()) as { readonly id: string };
  for (; ; await pause(POLL)) {
    const now = await residentMegabytes(suite.pid);
    more = { own: Math.max(more.own, now.own - before.own), all: Math.max(more.all, now.all - before.all) };
    const shown = JSON.parse(await suite.get(`/admin/directories/${id}/runs/${run.id}`)) as {
      readonly phase: string;
      readonly users: CarriedOut['users'];
      readonly error_count: number;
    };
    if (shown.phase === 'completed' && shown.error_count === 0) return { milliseconds: performance.now() - began, users: shown.users, more };
    if (!['queued', 'comparing', 'applying'].includes(shown.phase)) throw new Error(`The listing ended as ${JSON.stringify(shown)}.`);
  }
}

function personOf({ domain }: SyncedDirectory, index: number): object {
  const userName = `synced-${index}@${domain}`;
  return {
    schemas: ['urn:ietf:params:scim:schemas:core:2.0:User'],
    userName,
    externalId: `synced-${index}`,
    name: { givenName: 'Person', familyName: `Number ${index}` },
    displayName: `Person Number ${index}`,
    title: 'Engineer',
    emails: [{ primary: true, type: 'work', value: userName }],
    active: true,
  };
}

async function named(answer: Promise<unknown>): Promise<{ readonly id: string }> {
  return (await answer) as { readonly id: string };
}
