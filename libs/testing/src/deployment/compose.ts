import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { runInNewContext } from 'node:vm';
import { parse } from 'yaml';
import { ROOT } from '../process.ts';

export interface ComposeFile {
  readonly services: Readonly<Record<string, ComposeService>>;
  readonly volumes: Readonly<Record<string, null>>;
}

export interface ComposeService {
  readonly image: string;
  readonly command?: readonly string[];
  readonly entrypoint?: readonly string[];
  readonly mem_limit?: string;
  readonly profiles?: readonly string[];
  readonly environment: Readonly<Record<string, string | number>>;
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly tmpfs?: readonly string[];
  readonly read_only?: boolean;
  readonly cap_drop?: readonly string[];
  readonly security_opt?: readonly string[];
  readonly stop_grace_period: string;
  readonly healthcheck?: object;
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
}

type Variables = Readonly<Record<string, string | undefined>>;

export function composeText(): string {
  return readFileSync(join(ROOT, 'docker-compose.yml'), 'utf8');
}

/** As Compose puts a file together, of what ours uses. @throws Error with the words of a `:?` */
export function interpolatedCompose(variables: Variables): ComposeFile {
  const whole = composeText().replaceAll(
    /\$(?:\$|\{(\w+)(?:(:?[?-])([^}]*))?\})/g,
    (match, name: string | undefined, kind: string | undefined, word: string) => {
      if (name === undefined) return '$';
      const value = variables[name];
      // Without the colon, what is set to nothing is nothing.
      if (value !== undefined && (value !== '' || kind === '-')) return value;
      if (kind?.endsWith('-')) return word;
      throw new Error(`${name} ${word} (${match})`);
    },
  );
  return parse(whole, { merge: true }) as ComposeFile;
}

/** Secrets as `docker/make-env.mjs` makes them. */
export function madeSecrets(): Readonly<Record<string, string>> {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-compose-'));
  try {
    cpSync(join(ROOT, 'docker'), join(folder, 'docker'), { recursive: true });
    const { status, stderr } = spawnSync(process.execPath, [join(folder, 'docker/make-env.mjs')], { encoding: 'utf8' });
    if (status !== 0) throw new Error(stderr);
    return parseEnv(readFileSync(join(folder, '.env'), 'utf8')) as Record<string, string>;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

export interface MongodbUsers {
  readonly users: Readonly<Record<string, { readonly pwd: string; readonly roles: readonly string[] }>>;
  readonly roles: Readonly<
    Record<
      string,
      {
        readonly privileges: readonly { readonly resource: { readonly db: string; readonly collection: string }; readonly actions: readonly string[] }[];
        readonly roles: readonly string[];
      }
    >
  >;
}

/** What MongoDB's shell would make of `docker/mongodb-users.js` on a first start, told these variables. */
export function mongodbUsers(variables: Variables): MongodbUsers {
  const made = { users: {} as Record<string, unknown>, roles: {} as Record<string, unknown> };
  const database = {
    getRole: () => null,
    getUser: () => null,
    createRole: ({ role, ...what }: { readonly role: string }) => (made.roles[role] = what),
    createUser: ({ user, ...what }: { readonly user: string }) => (made.users[user] = what),
  };
  const script = readFileSync(join(ROOT, 'docker/mongodb-users.js'), 'utf8');
  runInNewContext(script, { db: { getSiblingDB: () => database }, process: { env: variables } });
  return JSON.parse(JSON.stringify(made)) as MongodbUsers;
}
