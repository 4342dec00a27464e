import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from '#libs/testing/src/until';

const PROGRAM = `
process.on('SIGTERM', () => { console.log('asked to stop'); process.exit(0); });
setInterval(() => {}, 1_000);
console.log('runs as ' + process.pid);
`;

const root = process.cwd();
let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'gatehouse-run-'));
  await Promise.all(['run.mjs', 'bundle.mjs', 'package.json', 'package-lock.json', '.swcrc'].map((file) => cp(join(root, file), join(directory, file))));
  await symlink(join(root, 'node_modules'), join(directory, 'node_modules'), 'junction');
  await mkdir(join(directory, 'apps/suite/src'), { recursive: true });
});

afterAll(() => rm(directory, { recursive: true, force: true }));

describe('npm start', () => {
  it('builds what changed, and only then', async () => {
    await writeProgram('console.log("one");');
    expect(await start()).toEqual({ code: 0, lines: ['gatehouse: building …', 'one'] });
    expect(await start()).toEqual({ code: 0, lines: ['one'] });
    await writeProgram('console.log("two");');
    expect(await start()).toEqual({ code: 0, lines: ['gatehouse: building …', 'two'] });
  });

  it('keeps the exit code of the program', async () => {
    await writeProgram('process.exitCode = 7;');
    expect(await start()).toMatchObject({ code: 7 });
  });

  it('keeps the last good build when a new one fails', async () => {
    const good = 'console.log("good");';
    await writeProgram(good);
    await start();
    await writeProgram('this is no program');
    const { code, lines } = await start();
    expect(code).not.toBe(0);
    expect(lines.at(-1)).toMatch(/^gatehouse: the build failed/);
    await writeProgram(good);
    expect(await start()).toEqual({ code: 0, lines: ['good'] });
  });

  it.each(['SIGTERM', 'SIGKILL'] as const)('ends the program when npm ends by %s', async (signal) => {
    await writeProgram(PROGRAM);
    const npm = spawn('npm', ['start', '--silent'], { cwd: directory });
    let output = '';
    npm.stdout.on('data', (text: Buffer) => (output += text.toString()));
    // The program holds npm's output open, so it closes when both are gone.
    const closed = once(npm.stdout, 'close');
    await until(() => output.includes('runs as'));
    npm.kill(signal);
    await closed;
    expect(output.trim().split('\n').at(-1)).toBe('asked to stop');
  });
});

function writeProgram(text: string): Promise<void> {
  return writeFile(join(directory, 'apps/suite/src/main.ts'), text);
}

async function start(): Promise<{ readonly code: number; readonly lines: readonly string[] }> {
  const child = spawn(process.execPath, ['run.mjs', 'start'], { cwd: directory });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text: Buffer) => (output += text.toString()));
  const [code] = (await once(child, 'close')) as [number];
  return { code, lines: output.trim().split('\n') };
}
