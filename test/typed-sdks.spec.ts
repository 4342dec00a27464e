import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { givenJavaLibraries } from '#libs/testing/src/engines/given';
import { givenProgram } from '#libs/testing/src/given-program';
import { ROOT } from '#libs/testing/src/process';
import { givenSuite, type GivenSuite } from '#libs/testing/src/suite';

/** What a program that drives an SDK prints. */
interface Report {
  readonly called: readonly string[];
  readonly failed: readonly { readonly part: string; readonly line: string; readonly reason: string }[];
  /** Methods of the areas that exist which the program does not call. */
  readonly forgotten: readonly string[];
}

const run = promisify(execFile);
const python = givenProgram(`python-workos-${/^workos==(.+)$/m.exec(readFileSync(join(ROOT, 'test/sdks/python/requirements.txt'), 'utf8'))![1]}`);
const java = await givenJavaLibraries(join(ROOT, 'test/sdks/java'));
const CALLS_TIMEOUT_MS = 120_000;

async function report(command: readonly string[]): Promise<Report> {
  const { stdout } = await run(command[0]!, command.slice(1), { timeout: CALLS_TIMEOUT_MS });
  return JSON.parse(stdout) as Report;
}

describe('the official SDKs of typed languages', () => {
  let suite: GivenSuite;
  let clientId: string;
  beforeAll(async () => {
    suite = await givenSuite();
    clientId = await suite.clientIdOf(suite);
    // No SDK has a call for settings.
    const settings = { sign_out_uris: ['https://sdk.test/bye'], risk: { bot_detection: 'challenge' }, sms: { countries: ['DE'] } };
    await suite.patch('/admin/environment_settings', settings).expect(200);
    // No SDK has a call for types.
    await suite.post('/admin/resource_types', { slug: 'sdk_workspace', name: 'Workspace', parent_type_slugs: ['organization'] }).expect(201);
    await suite.post('/admin/resource_types', { slug: 'sdk_project', name: 'Project', parent_type_slugs: ['sdk_workspace'] }).expect(201);
  });

  (python === null ? it.skip : it)(
    'for Python read every answer',
    async () => {
      const { called, failed, forgotten } = await report([python!, join(ROOT, 'test/sdks/python/calls.py'), suite.url, suite.key, clientId]);
      expect({ failed, forgotten }).toEqual({ failed: [], forgotten: [] });
      expect(called.length).toBeGreaterThan(80);
    },
    CALLS_TIMEOUT_MS,
  );

  (java === null ? it.skip : it)(
    'for Java read every answer',
    async () => {
      const args = [suite.url, suite.key, join(ROOT, 'test/sdks/java/Calls.java'), clientId];
      const { called, failed, forgotten } = await report(java!.command({ main: 'Calls', isOurs: true, args }));
      expect({ failed, forgotten }).toEqual({ failed: [], forgotten: [] });
      expect(called.length).toBeGreaterThan(80);
    },
    CALLS_TIMEOUT_MS,
  );
});
