// Makes of what was compiled in a folder one file a program, and parts that several share or that are loaded when they are first needed: `node bundle.mjs FOLDER`.
// A process starts in two thirds of the time, and takes less memory, where it does not find, read and link two thousand files.
import { readdirSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { rolldown } from 'rolldown';

const compiled = resolve(process.argv[2]);
const programs = join(compiled, 'programs');

/** They find their binaries from where they lie. */
const BINARY = /^(@node-rs\/argon2|bcrypt|fs-native-extensions|lmdb)(\/|$)/;

/** Runs before everything that is decorated, in whichever part that lies: inside of one it would run after what that part imports. */
const FIRST = /^reflect-metadata$/;

/** By the name that docker/start.mjs and run.mjs know them by. Children lie with the parts, since a parent starts its child from the folder that it lies in itself. */
function entries() {
  const found = {};
  for (const { name, parentPath, path } of readdirSync(join(compiled, 'apps'), { recursive: true, withFileTypes: true })) {
    const file = join(parentPath ?? path, name);
    const app = /^apps\/([^/]+)\/src\/main\.js$/.exec(relative(compiled, file).replaceAll('\\', '/'))?.[1];
    if (app !== undefined) found[app] = file;
    else if (name === 'cli.js') found['gatehouse'] = file;
    else if (name.endsWith('-child.js')) found[`parts/${name.slice(0, -'.js'.length)}`] = file;
  }
  return found;
}

const compiledHere = {
  name: 'compiled here',
  // As package.json has it, but not yet in `dist`.
  resolveId(source) {
    return source.startsWith('#') ? join(compiled, `${source.slice(1)}.js`) : null;
  },
};

const asciiOnly = {
  name: 'ASCII only',
  generateBundle(_options, files) {
    for (const file of Object.values(files)) if (file.type === 'chunk') file.code = inAscii(file.code);
  },
};

/** One other character and Node keeps the whole text of a file in two bytes a character. A backslash before it means nothing in texts and patterns. */
function inAscii(code) {
  return code.replace(
    /(\\*)([^\0-\x7f])/g,
    (_all, before, character) => `${before.length % 2 === 1 ? before.slice(1) : before}\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

const bundle = await rolldown({ input: entries(), platform: 'node', plugins: [compiledHere, asciiOnly], external: [BINARY, FIRST], logLevel: 'silent' });
await bundle.write({
  dir: programs,
  format: 'esm',
  chunkFileNames: 'parts/[name]-[hash].js',
  // Nest knows classes by their names, and so do metrics, views and reactions.
  keepNames: true,
  comments: false,
});
await bundle.close();
