import { randomUUID } from 'node:crypto';
import type { GivenSuite } from './suite.ts';
import { eventually } from './until.ts';

// oxlint-disable-next-line typescript/no-explicit-any -- what a spec reads of an answer, it also asserts
type Body = any;
type Method = Parameters<GivenSuite['scim']>[0];
type Lines = string | Uint8Array | readonly string[];

export const CSV = 'text/csv; charset=utf-8';
export const NDJSON = 'application/x-ndjson';
export const user = (id: string, more: object = {}): string => JSON.stringify({ type: 'user', id, email: `${id}@acme.test`, ...more });
export const group = (id: string, members: readonly string[], more: object = {}): string => JSON.stringify({ type: 'group', id, name: id, members, ...more });

/** A directory of an organization of its own, and what its product sends. */
export class GivenDirectory {
  private constructor(
    private readonly suite: GivenSuite,
    readonly id: string,
    readonly token: string,
  ) {}

  static async open(suite: GivenSuite): Promise<GivenDirectory> {
    const { id: organization_id } = await suite
      .post('/organizations', { name: 'Acme', domain_data: [{ domain: `${randomUUID()}.test`, state: 'pending' }] })
      .expect(201);
    const { id } = await suite.post('/admin/directories', { organization_id, type: 'sftp', name: 'Acme HR' }).expect(201);
    const { token } = await suite.post(`/admin/directories/${id}/tokens`).expect(201);
    return new GivenDirectory(suite, id, token);
  }

  /** A full listing. */
  send(lines: Lines, query = '', type = NDJSON): ReturnType<GivenSuite['put']> {
    const content = typeof lines === 'string' || lines instanceof Uint8Array ? lines : `${lines.join('\n')}\n`;
    return this.suite.put(`/admin/directories/${this.id}/snapshot${query}`, content, { 'Content-Type': type });
  }

  run(id: string): Promise<Body> {
    return this.suite.get(`/admin/directories/${this.id}/runs/${id}`).expect(200);
  }

  /** How a run ends. */
  over(id: string): Promise<Body> {
    return eventually(async () => {
      const run = await this.run(id);
      expect(['completed', 'refused', 'failed']).toContain(run.phase);
      return run;
    }, 60_000);
  }

  async carryOut(lines: Lines, query = '', type = NDJSON): Promise<Body> {
    return this.over((await this.send(lines, query, type).expect(202)).id);
  }

  /** By what the product knows them by. */
  async users(): Promise<Record<string, Body>> {
    const { data } = await this.suite.get(`/directory_users?directory=${this.id}&limit=100`).expect(200);
    return Object.fromEntries(data.map((each: Body) => [each.idp_id, each]));
  }

  /** Who is in them, by their names. */
  async groups(): Promise<Record<string, readonly string[]>> {
    const { data } = await this.suite.get(`/directory_groups?directory=${this.id}&limit=100`).expect(200);
    const members = async ({ id }: Body) =>
      (await this.suite.get(`/directory_users?group=${id}&limit=100`).expect(200)).data.map(({ idp_id }: Body) => idp_id).sort();
    return Object.fromEntries(await Promise.all(data.map(async (each: Body) => [each.name, await members(each)])));
  }

  /** What was announced of it, oldest first. */
  async told(): Promise<readonly string[]> {
    const records = await this.suite.records();
    return records.filter(({ data }) => JSON.stringify(data).includes(this.id)).flatMap(({ public: names }) => names.map(({ name }) => name));
  }

  scim(method: Method, path: string, body?: object, replica?: number): ReturnType<GivenSuite['scim']> {
    return this.suite.scim(method, this.id, path, this.token, { body, ...(replica !== undefined && { replica }) });
  }
}
