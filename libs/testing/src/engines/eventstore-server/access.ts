import type { Metadata } from '@grpc/grpc-js';
import type { EventStore } from '#libs/event-sourcing/src/log/event-store';

/** What a user may do to a stream: read it, or append to it. */
type Action = '$r' | '$w';

export interface ServerUser {
  readonly name: string;
  readonly password: string;
  readonly groups: readonly string[];
}

/** Who asks: a name and groups; nobody where no password came. */
type Caller = readonly string[];

const ADMINS = '$admins';
const EVERYBODY = '$all';

/** Who may do what, by the users that this server knows and the lists that lie in its log, as the real one keeps them: metadata of `$all`, and `$settings`. */
export class Access {
  constructor(
    private readonly users: readonly ServerUser[],
    /** 22.10 counts whoever comes without a password to everybody, 24.10 does not. */
    private readonly letsInAnybody: boolean,
  ) {}

  /** Null for a name or a password that nobody has. */
  caller(called: Metadata): Caller | null {
    const given = called.get('authorization')[0];
    if (given === undefined) return [];
    const user = this.users.find(({ name, password }) => given === `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}`);
    return user === undefined ? null : [user.name, ...user.groups];
  }

  /** `stream` is `$all` for the whole log. */
  async allows(caller: Caller, action: Action, stream: string, log: EventStore): Promise<boolean> {
    if (caller.includes(ADMINS)) return true;
    const list = await this.listed(action, stream, log);
    return list.some((each) => (each === EVERYBODY ? caller.length > 0 || this.letsInAnybody : caller.includes(each)));
  }

  private async listed(action: Action, stream: string, log: EventStore): Promise<readonly string[]> {
    if (stream === '$all') return listOf((await documentIn(log, '$$$all'))?.['$acl']?.[action], ADMINS);
    // Metadata lie in a stream of their own, and have rights of their own.
    if (/^\$\$[^$]/.test(stream)) return listOf((await documentIn(log, '$settings'))?.['$userStreamAcl']?.[action === '$r' ? '$mr' : '$mw'], EVERYBODY);
    return stream.startsWith('$') ? [ADMINS] : listOf((await documentIn(log, '$settings'))?.['$userStreamAcl']?.[action], EVERYBODY);
  }
}

type AccessLists = Readonly<Record<string, Readonly<Record<string, unknown>> | undefined>>;

async function documentIn(log: EventStore, stream: string): Promise<AccessLists | null> {
  const last = await log.last(stream);
  return last === null ? null : (JSON.parse((last.data as { readonly data: string }).data) as AccessLists);
}

function listOf(given: unknown, otherwise: string): readonly string[] {
  return given === undefined ? [otherwise] : ([given].flat() as string[]);
}
