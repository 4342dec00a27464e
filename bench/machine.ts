import { execFile } from 'node:child_process';
import { cpus, release, totalmem, type } from 'node:os';

/** What the numbers were measured on. */
export async function machine(directory: string): Promise<string> {
  const [cpu] = cpus();
  const gigabytes = Math.round(totalmem() / 1024 ** 3);
  const parts = [`${cpus().length} cores of ${cpu?.model.trim() ?? 'an unknown processor'}`, `${gigabytes} GB`, await fileSystem(directory)];
  return [...parts, `${type()} ${release()}`, `Node ${process.versions.node}`, new Date().toISOString().slice(0, 10)].join(', ');
}

function fileSystem(directory: string): Promise<string> {
  return new Promise((resolve) => {
    execFile('df', ['--output=fstype', directory], (error, output) => resolve(error ? 'unknown file system' : (output.split('\n')[1] ?? '').trim()));
  });
}
