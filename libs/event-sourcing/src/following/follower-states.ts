import type { Clock } from '#libs/platform/src/clock';
import { newUlid, timeOfId } from '#libs/platform/src/ids';
import { SYSTEM_ENVIRONMENT } from '#libs/platform/src/request-context';
import type { ReadModels, Table } from '#libs/read-models/src/read-models';
import type { Position } from '../log/event-store.ts';

/** Why something that follows the log does not go on, and where. */
export interface Halt {
  /** It cannot fold an event; the log ends before what it has seen (it was restored to an earlier state); or it is being filled anew. */
  readonly reason: 'unfoldable' | 'ahead' | 'rebuilding';
  readonly position: Position;
}

/** What the holder of a lease tells of its work. */
export interface FollowerState {
  readonly halt: Halt | null;
  /** The last request to rebuild or resume it that was carried out; '' when there was none. */
  readonly carriedOut: string;
  /** Nobody goes on with it. */
  readonly isForgotten?: true;
}

/** The state, and the last request to rebuild or resume it: one that is later than `carriedOut` is to be carried out. */
export interface SharedState extends FollowerState {
  readonly requested: string;
}

/** More than there are. */
const MANY = 1_000;
const REQUEST = ' request';
const USE = ' use';
const POSITION_DIGITS = 16;

const AT_FIRST: FollowerState = { halt: null, carriedOut: '' };

/**
 * What the processes of a cluster tell each other about who follows the log (views, forwarders, reactions): which are halted, which are to be rebuilt or resumed, and
 * which are in use. The holder of the lease writes the state, under its token; anybody may ask to rebuild or resume it. Requests sort, and are done when a later one is.
 */
export class FollowerStates {
  private readonly table: Table<never>;
  private writes = 0;

  constructor(
    readModels: ReadModels,
    private readonly clock: Clock,
  ) {
    this.table = readModels.table<never>({ name: 'follower-states', indexes: [], rebuildable: false, isMadeAnew: true });
  }

  /** In the order of the names. */
  async read(names: readonly string[]): Promise<readonly SharedState[]> {
    const rows = await this.table.getMany(SYSTEM_ENVIRONMENT, [...names, ...names.map(requestOf)]);
    return names.map((_name, index) => {
      const state = rows[index];
      const request = rows[names.length + index];
      return { ...(state == null ? AT_FIRST : stateIn(state.text)), requested: request?.position ?? '' };
    });
  }

  /** Where a later token has told something, this is dropped. */
  async tell(name: string, state: FollowerState, token: number): Promise<void> {
    const position = `${String(token).padStart(POSITION_DIGITS, '0')}.${String(++this.writes).padStart(10, '0')}`;
    await this.table.write([{ environment: SYSTEM_ENVIRONMENT, id: name, position, revision: 0, text: textOf(state) }]);
  }

  /** Everything that ever told something and was not forgotten, by the beginning of its name. */
  async names(prefix: string): Promise<readonly string[]> {
    const { rows } = await this.table.page(SYSTEM_ENVIRONMENT, { order: 'asc', limit: MANY });
    const states = rows.filter(({ id }) => id.startsWith(prefix) && !id.endsWith(REQUEST) && !id.endsWith(USE));
    return states.filter(({ text }) => !stateIn(text).isForgotten).map(({ id }) => id);
  }

  /** Its state stays, for a process that was away so long that it was forgotten, until somebody tells another. */
  async forget(name: string, state: FollowerState, token: number): Promise<void> {
    await this.tell(name, { ...state, isForgotten: true }, token);
    await this.table.purge(SYSTEM_ENVIRONMENT, [requestOf(name), useOf(name)]);
  }

  /** Asks the holders to rebuild or resume these; answers what `carriedOut` will reach. */
  async request(names: readonly string[]): Promise<string> {
    const earlier = (await this.read(names)).map(({ requested }) => (requested === '' ? 0 : timeOfId(requested)));
    // Later than requests of a process whose clock is ahead, which would pass for this one.
    const request = newUlid(Math.max(this.clock.now(), ...earlier.map((time) => time + 1)));
    await this.table.write(
      names.map((name) => ({ environment: SYSTEM_ENVIRONMENT, id: requestOf(name), position: request, revision: 0, text: JSON.stringify({ request }) })),
    );
    return request;
  }

  /** Says that this process uses them, whether it brings them along or not. */
  async use(names: readonly string[]): Promise<void> {
    // Also where the clock of another is ahead: a use that is not later than the last would not be seen.
    const position = String(Math.max(this.clock.now(), ...(await this.usesOf(names)).map((use) => Number(use) + 1))).padStart(POSITION_DIGITS, '0');
    await this.table.write(
      names.map((name) => ({ environment: SYSTEM_ENVIRONMENT, id: useOf(name), position, revision: 0, text: JSON.stringify({ position }) })),
    );
  }

  /** In the order of the names, what is another text after each use by anybody; '' where nobody ever said so. By no clock: times tell nothing between processes. */
  async usesOf(names: readonly string[]): Promise<readonly string[]> {
    const rows = await this.table.getMany(SYSTEM_ENVIRONMENT, names.map(useOf));
    return rows.map((row) => row?.position ?? '');
  }
}

function useOf(name: string): string {
  return name + USE;
}

function requestOf(name: string): string {
  return name + REQUEST;
}

/** A state as it is stored, under the names of the first release: processes of both releases read it during an update. */
interface StoredState {
  readonly standing: Halt | null;
  readonly mended: string;
  readonly isForgotten?: true;
}

function textOf({ halt, carriedOut, ...rest }: FollowerState): string {
  return JSON.stringify({ standing: halt, mended: carriedOut, ...rest } satisfies StoredState);
}

function stateIn(text: string): FollowerState {
  const { standing, mended, ...rest } = JSON.parse(text) as StoredState;
  return { halt: standing, carriedOut: mended, ...rest };
}
