// Packages that specs load in few files: Jest loads every module anew for each file of specs, and of the 2,300 that the product is made of 1,500 are of packages.
// Jest asks `sync` where a module lies, and runs the default before it starts any worker.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, realpathSync, renameSync, rmSync } from 'node:fs';
import { join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Where it matters that two files have the same class, both have to be here or neither: `@eventstore/db-client` is not, since its parts are imported one by one. */
const BUNDLED = [
  '@nestjs/common',
  '@nestjs/core',
  '@nestjs/cqrs',
  '@nestjs/microservices',
  '@nestjs/platform-fastify',
  'ajv',
  'ajv/dist/2020.js',
  'class-validator',
  'class-validator/cjs/register-decorator.js',
  'csv-parse',
  'fast-json-stringify',
  'fastify',
  'kafkajs',
  'mongodb',
  'pino',
  'prom-client',
  'scim2-parse-filter',
  'undici',
];

/** They find their binaries from where they lie, and everything that is decorated has one `reflect-metadata`. */
const APART = /^(@node-rs\/argon2|bcrypt|fs-native-extensions|lmdb|reflect-metadata)(\/|$)/;

const packages = realpathSync(fileURLToPath(new URL('../node_modules', import.meta.url)));
/** Where each lies, by the name that it is imported by. */
export const files = new Map(BUNDLED.map((name) => [name, join(folder(), fileOf(name))]));

/** Of what is installed, and of what is done with it here. */
function folder() {
  const hash = createHash('sha256');
  for (const file of [join(packages, '.package-lock.json'), fileURLToPath(import.meta.url)]) hash.update(readFileSync(file));
  return join(packages, '.cache/gatehouse-packages', hash.digest('hex').slice(0, 16));
}

function fileOf(name) {
  return `${name.replaceAll('/', '_')}.mjs`;
}

/** Packages among themselves are loaded as they are. */
export function sync(name, options) {
  const file = options.basedir.includes(`${sep}node_modules${sep}`) ? undefined : files.get(name);
  return file ?? options.defaultResolver(name, options);
}

/** Makes the files, where that was not done yet. */
export default async function bundlePackages() {
  if (existsSync(folder())) return;
  const { rolldown } = await import('rolldown');
  const input = Object.fromEntries(BUNDLED.map((name) => [fileOf(name), `${ENTRY}${name}`]));
  const bundle = await rolldown({ input, platform: 'node', plugins: [entries], external: [APART], logLevel: 'silent' });
  // Another run may do the same at the same time: who is first is used.
  const next = `${folder()}-${process.pid}`;
  mkdirSync(next, { recursive: true });
  await bundle.write({ dir: next, format: 'esm', entryFileNames: '[name]', chunkFileNames: 'parts/[name]-[hash].mjs', keepNames: true, comments: false });
  await bundle.close();
  try {
    renameSync(next, folder());
  } catch (error) {
    rmSync(next, { recursive: true });
    if (!existsSync(folder())) throw error;
  }
}

const ENTRY = 'entry:';
const entries = {
  name: 'entries',
  resolveId(id) {
    return id.startsWith(ENTRY) ? id : null;
  },
  async load(id) {
    return id.startsWith(ENTRY) ? entryOf(id.slice(ENTRY.length)) : null;
  },
};

/** What Node finds exported of a package. Only a module of CommonJS has a default export; its names are not seen in its text. */
async function entryOf(name) {
  const { default: whole, ...named } = await import(name);
  const from = JSON.stringify(name);
  if (whole === undefined) return `export * from ${from};`;
  const names = Object.keys(named).filter((each) => each !== 'module.exports');
  return [`import whole from ${from};`, 'export default whole;', ...names.map((each) => `export const ${each} = whole.${each};`)].join('\n');
}
