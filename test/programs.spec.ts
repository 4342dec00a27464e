import { execFile, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { SERVICES } from '#libs/contracts/src/operation';
import { ROOT } from '#libs/testing/src/process';

const run = promisify(execFile);

describe('a bundle of programs', () => {
  let folder: string;
  const write = (path: string, text: string): void => {
    mkdirSync(dirname(join(folder, 'dist', path)), { recursive: true });
    writeFileSync(join(folder, 'dist', path), text);
  };
  const printed = async (file: string): Promise<unknown> => JSON.parse((await run(process.execPath, [join(folder, 'dist/programs', file)])).stdout);

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'gatehouse-programs-'));
    symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'), 'junction');
    cpSync(join(ROOT, 'package.json'), join(folder, 'package.json'));
    write('libs/one.js', 'export const One = (() => { class Twin {} return Twin; })(); export class Twin {}');
    write('libs/two.js', 'export class Twin {}');
    write('libs/seldom.js', 'export const seldom = "seldom";');
    write('apps/suite/src/parent.js', 'import { join } from "node:path"; export const child = join(import.meta.dirname, "walking-child.js");');
    write('apps/suite/src/backup/walking-child.js', 'console.log(JSON.stringify("walked"));');
    write(
      'apps/suite/src/main.js',
      String.raw`
        import { hash } from 'bcrypt';
        import { One, Twin } from '#libs/one';
        import { Twin as Other } from '#libs/two';
        import { child } from './parent.js';
        const { seldom } = await import('#libs/seldom');
        const absent = await import('a-package-that-nobody-installs').catch(({ code }) => code);
        const texts = ['≤ ü 𝄞', ${'`“${1}” \\\\…`'}];
        const matches = [/^≤[–𝄞]$/u.test('≤𝄞'), /^\…\\–$/.test('…\\–')];
        console.log(JSON.stringify({ names: [One.name, Twin.name, Other.name], seldom, absent, hash: typeof hash, texts, matches }));
        console.error(child);
      `,
    );
    write('apps/suite/src/cli.js', 'import "./parent.js"; console.log(JSON.stringify("command line"));');
    await run(process.execPath, [join(ROOT, 'bundle.mjs'), join(folder, 'dist')], { cwd: folder });
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  it('does what its modules do, with the names of their classes', async () => {
    expect(await printed('suite.js')).toEqual({
      names: ['Twin', 'Twin', 'Twin'],
      seldom: 'seldom',
      absent: 'ERR_MODULE_NOT_FOUND',
      hash: 'function',
      texts: ['≤ ü 𝄞', '“1” \\…'],
      matches: [true, true],
    });
    expect(await printed('gatehouse.js')).toBe('command line');
  });

  it('has a child where its parent looks for it', async () => {
    const { stderr } = await run(process.execPath, [join(folder, 'dist/programs/suite.js')]);
    expect((await run(process.execPath, [stderr.trim()])).stdout).toBe('"walked"\n');
  });

  it('is in ASCII, which takes one byte a character in memory', () => {
    for (const text of textsBelow(join(folder, 'dist/programs')).values()) expect(text).not.toMatch(/[^\0-\x7f]/);
  });
});

// The build has to be there (`npm run build`), with its programs.
describe('the programs of the product', () => {
  const programs = join(ROOT, 'dist/programs');
  const texts = textsBelow(programs);
  const importsOf = (file: string): readonly string[] =>
    [...texts.get(file)!.matchAll(/^(?:import|export) (?:[^"';]*? from )?"(\.[^"]+)";$/gm)].map(([, path]) => join(dirname(file), path!));
  /** What is read before the first line of these runs. */
  const loadedWith = (...files: readonly string[]): ReadonlySet<string> => {
    const loaded = new Set(files);
    for (const file of loaded) for (const needed of importsOf(file)) loaded.add(needed);
    return loaded;
  };
  const packagesIn = (files: Iterable<string>): ReadonlySet<string> =>
    new Set([...files].flatMap((file) => [...texts.get(file)!.matchAll(/^\/\/ node_modules\/((?:@[^/\n]+\/)?[^/\n]+)\//gm)].map(([, name]) => name!)));
  const partOf = (name: string): string => [...texts.keys()].find((file) => file.startsWith(`parts/${name}-`))!;

  it('load a hundred files at most, and no library that may never be used', () => {
    const engines = ['@eventstore/db-client', '@grpc/grpc-js', 'kafkajs', 'mongodb'];
    const seldom = ['@peculiar/x509', 'libphonenumber-js', 'nodemailer'];
    const suite = loadedWith('suite.js', partOf('suite'), partOf('embedded'));
    expect(suite.size).toBeLessThan(100);
    expect([...packagesIn(suite)]).toEqual(expect.arrayContaining(['fastify', '@nestjs/core']));
    expect([...engines, ...seldom, '@nestjs/microservices'].filter((name) => packagesIn(suite).has(name))).toEqual([]);
    for (const app of ['gateway', ...SERVICES]) expect(seldom.filter((name) => packagesIn(loadedWith(`${app}.js`)).has(name))).toEqual([]);
  });

  it('have no parts that need each other, whose order would depend on who is first', () => {
    const whole = new Set<string>();
    const circleFrom = (file: string, above: readonly string[]): readonly string[] => {
      if (above.includes(file)) return [...above, file];
      const circle = whole.has(file) ? [] : importsOf(file).flatMap((needed) => circleFrom(needed, [...above, file]));
      whole.add(file);
      return circle;
    };
    for (const file of texts.keys()) expect(circleFrom(file, [])).toEqual([]);
  });

  it('have parts of which each can be loaded', () => {
    const parts = [...texts.keys()].filter((file) => file.startsWith('parts/') && !file.endsWith('-child.js'));
    const program = parts.map((file) => `await import(${JSON.stringify(pathToFileURL(join(programs, file)).href)});`).join('\n');
    expect(spawnSync(process.execPath, ['--input-type=module', '-e', program], { encoding: 'utf8' })).toMatchObject({ status: 0, stderr: '' });
  });
});

function textsBelow(folder: string): ReadonlyMap<string, string> {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.js'));
  return new Map(files.map((file) => [file, readFileSync(join(folder, file), 'utf8')]));
}
