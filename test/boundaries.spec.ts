import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

interface Planted {
  readonly rule: string;
  readonly file: string;
  readonly breaks: string;
  /** The same file again under another name, which has to pass; absent where a type-only import is refused as well. */
  readonly passes?: string;
}

const planted: readonly Planted[] = [
  {
    rule: 'deciders-stay-pure',
    file: 'apps/identity/src/pure.decider.ts',
    breaks: `import { value } from '#libs/platform/src/value'; console.log(value);`,
    passes: `import type { value } from '#libs/platform/src/value'; export type Value = typeof value;`,
  },
  {
    rule: 'deciders-stay-pure',
    file: 'apps/identity/src/digest.decider.ts',
    breaks: `import { createHash } from 'node:crypto'; console.log(createHash);`,
    passes: `import { DomainError } from '#libs/platform/src/domain-error'; console.log(DomainError);`,
  },
  { rule: 'ports-know-no-driver', file: 'libs/event-sourcing/src/log/event-store.ts', breaks: `import { open } from 'lmdb'; console.log(open);` },
  { rule: 'ports-know-no-driver', file: 'libs/read-models/src/short-lived.ts', breaks: `import type { Database } from 'lmdb'; export type Driver = Database;` },
  {
    rule: 'ports-know-no-driver',
    file: 'libs/blobs/src/blobs.ts',
    breaks: `import type { S3Client } from '@aws-sdk/client-s3'; export type Driver = S3Client;`,
  },
  {
    rule: 'privates-of-the-driver-in-one-place',
    file: 'libs/event-sourcing/src/eventstoredb/reach.ts',
    breaks: `import streams from '@eventstore/db-client/generated/streams_pb.js'; console.log(streams);`,
    passes: `import { EventStoreDBClient } from '@eventstore/db-client'; console.log(EventStoreDBClient);`,
  },
  {
    rule: 'apps-do-not-import-apps',
    file: 'apps/gateway/src/gateway.ts',
    breaks: `import { value } from '#apps/identity/src/value'; console.log(value);`,
    passes: `import type { value } from '#apps/identity/src/value'; export type Value = typeof value;`,
  },
  {
    rule: 'features-share-what-lies-below',
    file: 'apps/authorization/src/checks/check.ts',
    breaks: `import type { value } from '../model/value.ts'; export type Value = typeof value;`,
    passes: `import { value } from '../domain/value.ts'; console.log(value);`,
  },
  {
    rule: 'features-share-what-lies-below',
    file: 'apps/authorization/src/model/composed.ts',
    breaks: `import { value } from '../value.ts'; console.log(value);`,
    passes: `import { value } from './value.ts'; console.log(value);`,
  },
  {
    rule: 'features-share-what-lies-below',
    file: 'apps/authorization/src/views/high.ts',
    breaks: `import { value } from '../guards/value.ts'; console.log(value);`,
    passes: `import { value } from '../domain/value.ts'; console.log(value);`,
  },
  {
    rule: 'features-share-what-lies-below',
    file: 'apps/authorization/src/guards/higher.ts',
    breaks: `import { value } from '../model/value.ts'; console.log(value);`,
    passes: `import { value } from '../views/value.ts'; console.log(value);`,
  },
  {
    rule: 'libs-do-not-import-apps',
    file: 'libs/messaging/src/transport.ts',
    breaks: `import { value } from '#apps/identity/src/value'; console.log(value);`,
    passes: `import type { value } from '#apps/identity/src/value'; export type Value = typeof value;`,
  },
  {
    rule: 'libs-stand-on-lower-ones',
    file: 'libs/messaging/src/started.ts',
    breaks: `import type { value } from '#libs/runtime/src/value'; export type Value = typeof value;`,
    passes: `import { value } from '#libs/read-models/src/value'; console.log(value);`,
  },
  {
    rule: 'contracts-do-no-io',
    file: 'libs/contracts/src/schema.ts',
    breaks: `import { readFileSync } from 'node:fs'; console.log(readFileSync);`,
    passes: `import { createHash } from 'node:crypto'; console.log(createHash);`,
  },
  {
    rule: 'libs-stand-on-lower-ones',
    file: 'libs/contracts/src/page.ts',
    breaks: `import { value } from '#libs/read-models/src/value'; console.log(value);`,
    passes: `import { value } from '#libs/platform/src/value'; console.log(value);`,
  },
  { rule: 'no-cycles', file: 'libs/platform/src/back.ts', breaks: `import { forth } from './forth.ts'; console.log(forth); export const back = 1;` },
  { rule: 'no-cycles', file: 'libs/platform/src/here.ts', breaks: `import type { There } from './there.ts'; export type Here = There | null;` },
  { rule: 'specs-are-not-imported', file: 'libs/platform/src/shared.ts', breaks: `import { given } from './given.spec.ts'; console.log(given);` },
  {
    rule: 'products-know-no-fixtures',
    file: 'libs/platform/src/fixed.ts',
    breaks: `import type { value } from '#libs/testing/src/value'; export type Value = typeof value;`,
  },
  { rule: 'products-know-no-fixtures', file: 'libs/platform/src/promised.ts', breaks: `import { value } from './value.contract.ts'; console.log(value);` },
  {
    rule: 'products-know-no-fixtures',
    file: 'apps/authorization/src/value.module.ts',
    breaks: `import { value } from './testing/value.ts'; console.log(value);`,
  },
  { rule: 'imports-resolve', file: 'libs/platform/src/lost.ts', breaks: `import { lost } from '#libs/platform/src/nowhere'; console.log(lost);` },
];

const surroundings: Readonly<Record<string, string>> = {
  'apps/authorization/src/value.ts': `import { value } from './model/value.ts'; console.log(value); export { value };`,
  ...Object.fromEntries(['domain', 'views', 'guards', 'model'].map((folder) => [`apps/authorization/src/${folder}/value.ts`, 'export const value = 1;'])),
  'apps/identity/src/value.ts': 'export const value = 1;',
  'apps/suite/src/main.ts': `import { value } from '#apps/identity/src/value'; console.log(value);`,
  'libs/platform/src/value.ts': 'export const value = 1;',
  'libs/platform/src/domain-error.ts': 'export class DomainError extends Error {}',
  'libs/platform/src/given.spec.ts': 'export const given = 1;',
  'libs/platform/src/forth.ts': `import { back } from './back.ts'; console.log(back); export const forth = 1;`,
  'libs/runtime/src/value.ts': `import { value } from '#libs/platform/src/value'; console.log(value); export { value };`,
  'libs/testing/src/value.ts': `import { value } from '#libs/runtime/src/value'; console.log(value); export { value };`,
  'libs/platform/src/value.contract.ts': `import { value } from '#libs/testing/src/value'; console.log(value); export { value };`,
  'libs/event-sourcing/src/eventstoredb/driver.ts': `import streams from '@eventstore/db-client/generated/streams_pb.js'; export { streams };`,
  'libs/platform/src/there.ts': `import { forth } from './forth.ts'; import type { Here } from './here.ts'; console.log(forth); export type There = readonly Here[];`,
  'apps/authorization/src/testing/value.ts': `import { value } from '../model/value.ts'; console.log(value); export { value };`,
  'libs/read-models/src/value.ts': 'export const value = 1;',
};

const root = process.cwd();
let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'gatehouse-boundaries-'));
  await Promise.all(['package.json', 'tsconfig.json', 'tsconfig.base.json'].map((file) => cp(join(root, file), join(directory, file))));
  await symlink(join(root, 'node_modules'), join(directory, 'node_modules'), 'junction');
});

afterAll(() => rm(directory, { recursive: true, force: true }));

it('catches each planted import, and nothing else', async () => {
  const files = new Map(Object.entries(surroundings));
  for (const { file, breaks, passes } of planted) {
    files.set(file, breaks);
    if (passes !== undefined) files.set(besides(file), passes);
  }
  for (const [file, text] of files) {
    await mkdir(dirname(join(directory, file)), { recursive: true });
    await writeFile(join(directory, file), text);
  }
  expect(await violations()).toEqual(planted.map(({ rule, file }) => `${rule}: ${file}`).sort());
});

function besides(file: string): string {
  return join(dirname(file), `well-behaved-${file.slice(dirname(file).length + 1)}`);
}

function violations(): Promise<readonly string[]> {
  const program = join(root, 'node_modules/dependency-cruiser/bin/dependency-cruise.mjs');
  const args = [program, 'apps', 'libs', '--config', join(root, '.dependency-cruiser.mjs'), '--output-type', 'json'];
  return new Promise((resolve, reject) => {
    execFile(process.execPath, args, { cwd: directory, maxBuffer: 1 << 24 }, (error, output, messages) => {
      if (error && output === '') return reject(new Error(messages));
      const { summary } = JSON.parse(output) as { summary: { violations: readonly { rule: { name: string }; from: string }[] } };
      return resolve(summary.violations.map(({ rule, from }) => `${rule.name}: ${from}`).sort());
    });
  });
}
