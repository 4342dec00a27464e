import { readFileSync } from 'node:fs';

interface LockedPackage {
  readonly resolved?: string;
  readonly integrity?: string;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8')) as { packages: Readonly<Record<string, LockedPackage>> };
const locked = Object.entries(packages).filter(([path]) => path !== '');

describe('the lockfile', () => {
  it('names a hash for every package', () => {
    expect(locked.filter(([, { integrity }]) => !integrity?.startsWith('sha512-'))).toEqual([]);
  });

  it('names no registry, so that whoever installs uses their own', () => {
    expect(locked.filter(([, { resolved }]) => resolved !== undefined)).toEqual([]);
  });

  // npm leaves out what its registry did not have on the day, and `npm ci` then refuses the whole file.
  it('has the packages of every platform, not only of the one that wrote it', () => {
    const names = locked.flatMap(([, { optionalDependencies }]) => Object.keys(optionalDependencies ?? {}));
    expect(names.filter((name) => packages[`node_modules/${name}`] === undefined)).toEqual([]);
  });
});
