import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

interface Planted {
  readonly rule: string;
  readonly breaks: string;
  /** The same in order. */
  readonly passes: string;
  /** Absent: the program's own code. */
  readonly folder?: string;
  readonly ending?: string;
}

const SOME = `interface Some { readonly size: number }\nconst some: Some | null = JSON.parse('null') as Some | null;\n`;
const LATER = `const later = (): Promise<number> => Promise.resolve(1);\n`;

const planted: readonly Planted[] = [
  { rule: 'typescript(TS18047)', breaks: `${SOME}export const size = some.size;`, passes: `${SOME}export const size = some?.size;` },
  { rule: 'typescript(no-floating-promises)', breaks: `${LATER}later();`, passes: `${LATER}await later();` },
  { rule: 'typescript(no-misused-promises)', breaks: `${LATER}console.log([1].filter(() => later()));`, passes: `${LATER}console.log([await later()]);` },
  {
    rule: 'typescript(switch-exhaustiveness-check)',
    breaks: `export function told(of: 'a' | 'b'): void {\n  switch (of) {\n    case 'a':\n      console.log(1);\n  }\n}`,
    passes: `export function told(of: 'a' | 'b'): void {\n  switch (of) {\n    case 'a':\n    case 'b':\n      console.log(1);\n  }\n}`,
  },
  {
    rule: 'typescript(no-unsafe-member-access)',
    breaks: `export const size = (JSON.parse('{}')).size as number;`,
    passes: `export const size = (JSON.parse('{}') as { size: number }).size;`,
  },
  { rule: 'typescript(no-explicit-any)', breaks: `export const some: any = 1;`, passes: `export const some: unknown = 1;` },
  { rule: 'eslint(no-unused-vars)', breaks: `const some = 1;`, passes: `export const some = 1;` },
  { rule: 'eslint(no-restricted-properties)', breaks: `console.log(process.env);`, passes: `console.log(process.argv);` },
  { rule: 'eslint(no-restricted-properties)', folder: 'libs/testing/src', breaks: `console.log(process.env);`, passes: `console.log(process.argv);` },
  { rule: 'eslint(no-restricted-imports)', breaks: `import { argv } from 'node:process'; console.log(argv);`, passes: `console.log(process.argv);` },
  { rule: 'eslint(no-restricted-exports)', breaks: `export default 1;`, passes: `export const one = 1;` },
  { rule: 'eslint(no-undef)', ending: 'mjs', breaks: `some();`, passes: `console.log(1);` },
  {
    rule: 'house(imports-of-types)',
    breaks: `import { Clock } from './clock.ts'; export const now = (clock: Clock): number => clock.now();`,
    passes: `import type { Clock } from './clock.ts'; export const now = (clock: Clock): number => clock.now();`,
  },
  {
    rule: 'house(imports-of-types)',
    breaks: `import { Clock } from './clock.ts'; export type Clocks = readonly Clock[];`,
    passes: `import { Clock } from './clock.ts'; export { Clock };`,
  },
  {
    // Injection needs the value.
    rule: 'house(imports-of-types)',
    breaks: `import { Clock } from './clock.ts'; export class Now {\n  constructor(readonly clock: Clock) {}\n}`,
    passes: `import { Clock } from './clock.ts'; const injected = (_of: unknown): void => {};\n@injected export class Now {\n  constructor(readonly clock: Clock) {}\n}`,
  },
  { rule: 'house(seeded-chance)', ending: 'spec.ts', breaks: `console.log(Math.random());`, passes: `console.log(Math.max(1));` },
  { rule: 'house(seeded-chance)', ending: 'spec.ts', breaks: `import { randomInt } from 'node:crypto'; console.log(randomInt(2));`, passes: '' },
  {
    rule: 'house(seeded-chance)',
    ending: 'spec.ts',
    breaks: `import fc from 'fast-check'; fc.assert(fc.property(fc.nat(), () => {}), { numRuns: 1 });`,
    passes: `import fc from 'fast-check'; fc.assert(fc.property(fc.nat(), () => {}), { numRuns: 1, seed: 1 });`,
  },
  {
    rule: 'house(no-fixed-time)',
    ending: 'spec.ts',
    breaks: `const began = 0; expect(Date.now() - began).toBeLessThan(2_000);`,
    passes: `const began = 0; const mayTake = (limit: number): number => limit; expect(Date.now() - began).toBeLessThan(mayTake(2_000));`,
  },
];

const root = process.cwd();
let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'gatehouse-lint-'));
  for (const file of ['.oxlintrc.json', '.ci/lint-rules.mjs', 'tsconfig.json', 'tsconfig.base.json', 'package.json'])
    await cp(join(root, file), join(directory, file));
  await symlink(join(root, 'node_modules'), join(directory, 'node_modules'), 'junction');
});
afterAll(() => rm(directory, { recursive: true, force: true }));

it('refuses each planted line, and nothing else', async () => {
  const files = new Map([['apps/shop/src/clock.ts', 'export abstract class Clock {\n  abstract now(): number;\n}']]);
  const expected: string[] = [];
  planted.forEach(({ rule, breaks, passes, folder = 'apps/shop/src', ending = 'ts' }, index) => {
    const broken = `${folder}/broken-${index}.${ending}`;
    files.set(broken, `${breaks}\n`).set(`${folder}/right-${index}.${ending}`, `${passes}\n${/^(import|export) /m.test(passes) ? '' : 'export {};\n'}`);
    expected.push(`${broken} ${rule}`);
  });
  for (const [file, text] of files) {
    await mkdir(dirname(join(directory, file)), { recursive: true });
    await writeFile(join(directory, file), text);
  }
  expect(await refused()).toEqual(expected.sort());
});

function refused(): Promise<readonly string[]> {
  return new Promise((resolve, reject) => {
    execFile(
      process.execPath,
      [join(root, 'node_modules/oxlint/bin/oxlint'), '--format', 'json', 'apps', 'libs'],
      { cwd: directory, maxBuffer: 1 << 24 },
      (error, output, messages) => {
        if (error && output === '') return reject(new Error(messages));
        const { diagnostics } = JSON.parse(output) as { diagnostics: readonly { readonly code: string; readonly filename: string }[] };
        return resolve(diagnostics.map(({ code, filename }) => `${filename} ${code}`).sort());
      },
    );
  });
}
