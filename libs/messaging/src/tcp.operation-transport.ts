import { lookup } from 'node:dns/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { fieldsOf, type Field } from '#libs/contracts/src/field';
import { placesOf, prefixOf } from '#libs/contracts/src/json-schema';
import { operationOf, Serialised, type Class, type Operation, type ServiceName, type RegisteredOperation } from '#libs/contracts/src/operation';
import type { Clock } from '#libs/platform/src/clock';
import { unavailable } from '#libs/platform/src/domain-error';
import type { Log } from '#libs/platform/src/log';
import type { Metrics } from '#libs/platform/src/metrics';
import { HANDED_ON_AFTER, type RequestContext } from '#libs/platform/src/request-context';
import { RemoteOperations } from './routed.operation-transport.ts';
import { ThrottledLog } from './tcp/throttled-log.ts';
import { MESSAGE, type Message } from './tcp/frame-socket.ts';
import { Replica, type Attempt } from './tcp/replica.ts';
import { keyOf, Replicas, type Resolve } from './tcp/replicas.ts';
import type { ServiceSecurity } from './tcp/service-security.ts';
import { contextText, readReceipt, readRefusal } from './tcp/wire.ts';

/** How exactly a deadline is kept; one timer looks after all calls. */
const SWEEP = 20;
const ROUND = 500;
const LOOK_UP = 2_000;
/** How often it is looked whether all services can be asked. */
const REACHED = 50;
/** Nobody waits longer, whatever the deadline says. */
const LONGEST = 600_000;
/** Calls that wait for a connection, of one service. */
const MAX_WAITING = 1_000;
/** Where there are others, a replica begins nothing that has waited so long: one that is silent for three rounds is left. */
const STALE = 1_400;
/** A request under which every replica breaks is not handed on to the last one. */
const MAX_ATTEMPTS = 3;
/** Where everything is slow, asking everything twice makes it slower: each call allows a tenth of a second attempt, and so many can be saved up. */
const SECOND_ATTEMPTS = { perCall: 0.1, saved: 100 };

interface Needs {
  /** `host:port` of the replicas of each service that is asked; every host is a name that may have many addresses. */
  readonly addresses: Readonly<Partial<Record<ServiceName, readonly string[]>>>;
  readonly security: ServiceSecurity;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly resolve?: Resolve;
}

interface Call extends Attempt {
  readonly registered: RegisteredOperation;
  readonly context: RequestContext;
  readonly key: number | null;
  readonly resolve: (answer: never) => void;
  readonly reject: (error: unknown) => void;
  readonly tried: Replica<Call>[];
  attempts: number;
  number: number;
  /** Null while it waits for a connection, or for its time to be handed on. */
  replica: Replica<Call> | null;
  id: number;
  /** When another replica is asked. */
  patientUntil: number;
  /** When it is handed on, its replica being gone or silent. */
  handedOnAt: number;
}

interface Target {
  readonly owner: ServiceName;
  readonly replicas: Replicas<Call>;
  readonly waiting: Set<Call>;
}

/** Why a call moved on from a replica. */
type Reason = 'broken' | 'silent' | 'slow' | 'declined' | 'needs_later_release';

/**
 * Asks the replicas of other services. A connection that breaks, a replica that falls silent, is busy or takes too long: another one is asked, with the same command id,
 * so that whatever was done already is found done. Of a command that may have begun no other is asked, and nothing said, before it is a second old: until then
 * whoever carries it out needs not look whether another has (`mayHaveRun`).
 */
export class TcpOperationTransport extends RemoteOperations {
  private readonly targets = new Map<ServiceName, Target>();
  private readonly calls = new Set<Call>();
  private readonly affinities = new Map<RegisteredOperation, Field | null>();
  private readonly moved;
  private readonly unreachable;
  private secondAttempts = SECOND_ATTEMPTS.saved;
  private sweeper: NodeJS.Timeout | undefined;
  private sweptAt = 0;
  private rounds: NodeJS.Timeout | undefined;
  private roundAt = 0;
  private lookUps: NodeJS.Timeout | undefined;
  private isClosed = false;

  constructor(private readonly needs: Needs) {
    super();
    const { addresses, security, log, metrics, resolve = addressesOf } = needs;
    const complaints = new ThrottledLog(log);
    const failed = (host: string, error: unknown): void => complaints.warn('The name of a service cannot be looked up.', { host, error });
    for (const [name, list] of Object.entries(addresses)) {
      const owner = name as ServiceName;
      const listeners = {
        answered: (call: Call, message: Message) => this.take(call, message),
        broke: (calls: readonly Call[]) => this.moveBroken(calls),
        changed: (replica: Replica<Call>) => this.follow(this.targets.get(owner)!, replica),
      };
      const connect = (host: string, port: number): Replica<Call> => new Replica(host, port, { owner, security, log, listeners });
      this.targets.set(owner, { owner, replicas: new Replicas({ addresses: list, resolve, connect, failed }), waiting: new Set() });
    }
    this.moved = metrics.counter({ name: 'operations_moved_total', help: 'Operations that were asked of another replica.', labels: ['owner', 'reason'] });
    this.unreachable = metrics.counter({ name: 'operations_unreachable_total', help: 'Operations that no replica answered.', labels: ['owner'] });
    metrics.gauge({
      name: 'operation_replicas',
      help: 'Replicas of other services, by how they are.',
      labels: ['owner', 'state'],
      collect: (gauge) => {
        gauge.reset();
        for (const { owner, replicas } of this.targets.values()) for (const { state } of replicas) gauge.inc({ owner, state });
      },
    });
  }

  /** Resolves when the names were looked up for the first time; connections follow. Calls may come before. */
  async start(): Promise<void> {
    this.roundAt = performance.now();
    this.rounds = setInterval(() => this.round(), ROUND);
    this.lookUps = setInterval(() => void this.lookUp(), LOOK_UP);
    for (const timer of [this.rounds, this.lookUps]) timer.unref();
    await this.lookUp();
  }

  async reached(): Promise<void> {
    const isAway = ({ replicas }: Target): boolean => replicas.choose(null) === null;
    while (!this.isClosed && [...this.targets.values()].some(isAway)) await pause(REACHED, undefined, { ref: false });
  }

  async close(): Promise<void> {
    this.isClosed = true;
    for (const timer of [this.rounds, this.lookUps, this.sweeper]) clearInterval(timer);
    for (const call of this.calls) this.fail(call, unavailable('This process is about to stop.'));
    for (const { replicas } of this.targets.values()) replicas.close();
  }

  call<Answer>(operation: Operation<Answer>): Promise<Answer> {
    const registered = operationOf(operation.constructor as Class);
    const { owner } = registered.options;
    const target = this.targets.get(owner);
    if (target === undefined) return Promise.reject(new Error(`${registered.name} is asked of ${owner}, of which no address is known.`));
    const { context, ...fields } = operation;
    const left = Math.min(context.deadline - this.needs.clock.now(), LONGEST);
    if (left <= 0) return Promise.reject(late());
    if (this.isClosed) return Promise.reject(unavailable('This process is about to stop.'));
    const now = performance.now();
    const { attempt = 1, sentAt = now } = context;
    this.secondAttempts = Math.min(this.secondAttempts + SECOND_ATTEMPTS.perCall, SECOND_ATTEMPTS.saved);
    return new Promise((resolve, reject) => {
      const call: Call = {
        registered,
        context,
        about: contextText(context, registered),
        fields: JSON.stringify(fields),
        deadline: now + left,
        key: this.keyOf(registered, fields),
        resolve: resolve,
        reject,
        tried: [],
        attempts: 0,
        number: attempt,
        sentAt,
        replica: null,
        id: 0,
        patientUntil: Infinity,
        handedOnAt: Infinity,
      };
      this.calls.add(call);
      this.watch();
      this.dispatch(target, call, now);
    });
  }

  /** Sends it to a replica, or lets it wait for one, or refuses it at once. */
  private dispatch(target: Target, call: Call, now: number): void {
    const { replicas, waiting, owner } = target;
    const replica = call.attempts < MAX_ATTEMPTS ? (replicas.choose(call.key, call.tried) ?? replicas.lastResort(call.tried)) : null;
    if (replica !== null) {
      this.send(target, call, replica, now);
      return;
    }
    call.replica = null;
    if (call.attempts < MAX_ATTEMPTS && replicas.isHopeful && waiting.size < MAX_WAITING) {
      waiting.add(call);
      return;
    }
    this.unreachable.inc({ owner });
    this.fail(call, unavailable(`The service ${owner} cannot be asked at the moment.`));
  }

  private send({ replicas }: Target, call: Call, replica: Replica<Call>, now: number): void {
    const left = call.deadline - now;
    const hasOther = call.attempts + 1 < MAX_ATTEMPTS && replicas.choose(null, [...call.tried, replica]) !== null;
    call.patientUntil = hasOther ? Math.max(now + left / 2, handedOnFrom(call)) : Infinity;
    call.attempts++;
    call.replica = replica;
    call.id = replica.send(call, now, hasOther ? Math.min(left / 2, STALE) : left);
  }

  private take(call: Call, { type, head, text }: Message): void {
    try {
      if (type !== MESSAGE.declined) readReceipt(head, call.context.receipt);
      switch (type) {
        case MESSAGE.answer:
          this.settle(call, JSON.parse(text));
          break;
        case MESSAGE.serialised:
          this.settle(call, new Serialised(text));
          break;
        case MESSAGE.empty:
          this.settle(call, undefined);
          break;
        case MESSAGE.refusal:
          this.refused(call, readRefusal(text));
          break;
        case MESSAGE.failure:
          this.fail(call, new Error(`${call.registered.name} failed in the service ${call.registered.options.owner}, whose log has the cause.`));
          break;
        case MESSAGE.declined:
          this.moveOn(call, 'declined');
          break;
        default:
          this.fail(call, new Error(`An answer of the unknown type ${type} came to ${call.registered.name}.`));
      }
    } catch (error) {
      this.fail(call, error);
    }
    const { replica } = call;
    if (replica?.state === 'leaving') this.follow(this.targetOf(call), replica);
  }

  private settle(call: Call, answer: unknown): void {
    this.calls.delete(call);
    call.resolve(answer as never);
  }

  /** What a replica of this release cannot read, one of a later release may: it is asked at once, since the one that answered does nothing more. */
  private refused(call: Call, { refusal, needsLaterRelease }: ReturnType<typeof readRefusal>): void {
    if (needsLaterRelease && this.canMove(this.targetOf(call), call)) this.moveOn(call, 'needs_later_release');
    else this.fail(call, refusal);
  }

  private fail(call: Call, error: unknown): void {
    this.calls.delete(call);
    this.targetOf(call).waiting.delete(call);
    call.reject(error);
  }

  private moveBroken(calls: readonly Call[]): void {
    const now = performance.now();
    for (const call of calls) {
      if (!this.calls.has(call)) continue;
      this.moved.inc({ owner: call.registered.options.owner, reason: 'broken' });
      call.number++;
      call.replica = null;
      if (now < handedOnFrom(call)) call.handedOnAt = handedOnFrom(call);
      else this.dispatch(this.targetOf(call), call, now);
    }
  }

  /** Away from the replica that has it, for good. */
  private moveOn(call: Call, reason: Reason): void {
    const { replica } = call;
    if (replica !== null) {
      replica.cancel(call.id);
      call.tried.push(replica);
    }
    if (reason !== 'declined') call.number++;
    this.moved.inc({ owner: call.registered.options.owner, reason });
    this.dispatch(this.targetOf(call), call, performance.now());
  }

  /** What follows from a change of a replica: others take over from it, or it takes what waits. */
  private follow(target: Target, replica: Replica<Call>): void {
    const { replicas } = target;
    if (replica.state === 'silent') for (const call of this.calls) if (call.replica === replica) this.leaveSilent(target, call);
    if (replica.state === 'leaving') {
      if (replica.load === 0 && replicas.choose(null, [replica]) !== null) replica.release();
      for (const other of replicas) other.hurry();
    }
    if (replica.state === 'ready') for (const other of replicas) other.release();
    this.dispatchWaiting(target);
  }

  private canMove({ replicas }: Target, { key, tried, replica, attempts }: Call): boolean {
    return attempts < MAX_ATTEMPTS && replicas.choose(key, replica === null ? tried : [...tried, replica]) !== null;
  }

  /** One timer for all deadlines. It runs only while there are calls. */
  private watch(): void {
    if (this.sweeper !== undefined) return;
    this.sweptAt = performance.now();
    this.sweeper = setInterval(() => this.sweep(), SWEEP);
  }

  private sweep(): void {
    if (this.calls.size === 0) {
      clearInterval(this.sweeper);
      this.sweeper = undefined;
      return;
    }
    const now = performance.now();
    // Answers may lie unread where this process stood still: no replica is slow because of that.
    const stoodStill = now - this.sweptAt > 10 * SWEEP;
    this.sweptAt = now;
    for (const call of this.calls) {
      if (now >= call.deadline) {
        call.replica?.cancel(call.id);
        this.fail(call, late());
      } else if (now >= call.handedOnAt) this.handOn(call, now);
      else if (now >= call.patientUntil && !stoodStill) this.losePatience(call);
    }
  }

  private leaveSilent(target: Target, call: Call): void {
    if (performance.now() < handedOnFrom(call)) call.handedOnAt = handedOnFrom(call);
    else if (this.canMove(target, call)) this.moveOn(call, 'silent');
  }

  /** It is old enough. A replica that was silent may speak again: then its answer is waited for. */
  private handOn(call: Call, now: number): void {
    call.handedOnAt = Infinity;
    const target = this.targetOf(call);
    if (call.replica === null) this.dispatch(target, call, now);
    else if (call.replica.state === 'silent') this.leaveSilent(target, call);
  }

  private losePatience(call: Call): void {
    call.patientUntil = Infinity;
    if (this.secondAttempts < 1 || !this.canMove(this.targetOf(call), call)) return;
    this.secondAttempts--;
    this.moveOn(call, 'slow');
  }

  private round(): void {
    const now = performance.now();
    const stoodStill = now - this.roundAt > 2 * ROUND;
    this.roundAt = now;
    for (const { replicas } of this.targets.values()) for (const replica of replicas) replica.round(now, stoodStill);
  }

  private async lookUp(): Promise<void> {
    await Promise.all(
      [...this.targets.values()].map(async (target) => {
        await target.replicas.refresh();
        // Where nothing was found, no replica changes that would let them go.
        if (!target.replicas.isHopeful) this.dispatchWaiting(target);
      }),
    );
  }

  private dispatchWaiting(target: Target): void {
    const calls = [...target.waiting];
    target.waiting.clear();
    const now = performance.now();
    for (const call of calls) this.dispatch(target, call, now);
  }

  private targetOf({ registered }: Call): Target {
    return this.targets.get(registered.options.owner)!;
  }

  private keyOf(registered: RegisteredOperation, fields: object): number | null {
    let field = this.affinities.get(registered);
    if (field === undefined) {
      field = affinityOf(registered);
      this.affinities.set(registered, field);
    }
    const id = field === null ? undefined : (fields as Readonly<Record<string, unknown>>)[field.name];
    return typeof id === 'string' ? keyOf(id) : null;
  }
}

/** When it may be handed on that a replica may have begun it: questions may be asked twice at any time. */
function handedOnFrom({ registered, sentAt }: Call): number {
  return registered.kind === 'command' ? sentAt + HANDED_ON_AFTER : -Infinity;
}

/** The field whose value keeps caches warm: the organization's id, else the first id in the path. */
function affinityOf(registered: RegisteredOperation): Field | null {
  const isOrganization = (field: Field): boolean => (field.kind === 'id' && field.prefix === 'org') || (field.kind === 'ref' && prefixOf(field.of()) === 'org');
  return fieldsOf(registered.type).find(isOrganization) ?? placesOf(registered).path[0] ?? null;
}

async function addressesOf(host: string): Promise<readonly string[]> {
  return (await lookup(host, { all: true })).map(({ address }) => address);
}

function late(): Error {
  return unavailable('The answer was not there in time.');
}
