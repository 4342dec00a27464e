import { execFile } from 'node:child_process';
import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { givenProgram } from '#libs/testing/src/given-program';
import { ROOT } from '#libs/testing/src/process';
import { givenSuite } from '#libs/testing/src/suite';

/** What the program that drives the clients prints. */
interface Report {
  /** How many checks the tester made. */
  readonly checked: number;
  readonly found: readonly object[];
  readonly called: readonly string[];
  readonly failed: readonly object[];
}

const run = promisify(execFile);
const CALLS_TIMEOUT_MS = 120_000;
const python = givenProgram(`python-scim-${hash('sha256', readFileSync(join(ROOT, 'test/scim/requirements.txt')), 'hex').slice(0, 12)}`);

(python === null ? it.skip : it)(
  'clients of SCIM that others wrote find nothing wrong, and do all that they can',
  async () => {
    const suite = await givenSuite({ variables: { PUBLIC_URL: 'https://api.acme.test/base/' } });
    const { id: organization_id } = await suite.post('/organizations', { name: 'Acme' }).expect(201);
    const { id } = await suite.post('/admin/directories', { organization_id, type: 'generic scim v2.0', name: 'Acme' }).expect(201);
    const { token } = await suite.post(`/admin/directories/${id}/tokens`).expect(201);
    const args = [join(ROOT, 'test/scim/calls.py'), `${suite.url}/scim/v2/${id}`, token, `https://api.acme.test/base/scim/v2/${id}`];
    const { checked, found, called, failed } = JSON.parse((await run(python!, args, { timeout: CALLS_TIMEOUT_MS })).stdout) as Report;
    expect({ found, failed }).toEqual({ found: [], failed: [] });
    expect(checked).toBeGreaterThan(120);
    expect(called.length).toBeGreaterThan(4);
  },
  CALLS_TIMEOUT_MS,
);
