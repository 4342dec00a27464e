import type { AddressInfo, Server as NetServer, Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { ServerTCP } from '@nestjs/microservices';
import { operations, Serialised, type ServiceName, type RegisteredOperation } from '#libs/contracts/src/operation';
import { serialiserOf } from '#libs/contracts/src/serialiser';
import { messageValidatorOf } from '#libs/contracts/src/validation';
import type { Clock } from '#libs/platform/src/clock';
import { DomainError, unavailable } from '#libs/platform/src/domain-error';
import { timeOfId } from '#libs/platform/src/ids';
import type { Log } from '#libs/platform/src/log';
import type { Metrics } from '#libs/platform/src/metrics';
import type { RequestContext } from '#libs/platform/src/request-context';
import { StartRefused } from '#libs/platform/src/start-refused';
import type { OperationTransport } from './operation-transport.ts';
import { ThrottledLog } from './tcp/throttled-log.ts';
import { FrameSocket, MAX_MESSAGE, MESSAGE, type Message } from './tcp/frame-socket.ts';
import { requireSafe, type ServiceSecurity } from './tcp/service-security.ts';
import { GREETING, readRequest, receiptText, refusalText } from './tcp/wire.ts';

/** What is executed at once; one more is declined, so that it can be asked of another replica while there is time. */
const MAX_RUNNING = 1_024;
/** Characters of all requests that are under way. */
const MAX_HELD = 256 * 1024 * 1024;
/** Connections of services that have shown who they are: one per process that asks. */
const MAX_PEERS = 512;
/** Connections that have not. One more closes the oldest, since whoever may enter does so within milliseconds. */
const MAX_STRANGERS = 256;
/** Nobody waits longer, whatever the request says. */
const LONGEST = 600_000;
/** Whatever a command creates has the time in the command's id, so nothing is created further ahead of the clock here (milliseconds). */
const MOST_AHEAD = 5_000;
const GREETING_TIME = 5_000;
/** A client says something twice a second. */
const SILENCE = 30_000;
const SWEEP = 1_000;
/** Without a request for so long, a server that is about to stop may. */
const QUIET = 1_000;
/** What one message holds beside its receipt. */
const MAX_ANSWER = MAX_MESSAGE - 1_024;

interface Needs {
  /** Carries operations out: the direct one. */
  readonly transport: OperationTransport;
  /** The services whose operations are answered here. */
  readonly owners: readonly ServiceName[];
  readonly security: ServiceSecurity;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
}

/** The service's side of a context; the deadline moves into the past when nobody waits any more. */
type RunningContext = RequestContext & { deadline: number };

interface Request {
  readonly peer: Peer;
  readonly message: Message;
  context: RunningContext | null;
  isCancelled: boolean;
}

interface Peer {
  readonly socket: FrameSocket;
  readonly from: string;
  readonly running: Map<number, Request>;
  isLetIn: boolean;
  heard: number;
  heardAt: number;
}

/** Answers operations that other processes ask of the services in this one. */
export class TcpOperationServer {
  private readonly known: ReadonlyMap<string, RegisteredOperation>;
  private readonly throttled: ThrottledLog;
  private readonly listener: Listener;
  private readonly peers = new Set<Peer>();
  private readonly strangers = new Map<string, { readonly socket: Socket; readonly since: number }>();
  private readonly declined;
  private readonly ahead;
  private queued: Request[] = [];
  private running = 0;
  private held = 0;
  private isDraining = false;
  private askedAt = 0;
  private sweeper: NodeJS.Timeout | undefined;
  private sweptAt = 0;

  constructor(private readonly needs: Needs) {
    const { log, metrics, owners, security } = needs;
    this.known = new Map(operations().flatMap((each) => (owners.includes(each.options.owner) ? [[each.name, each]] : [])));
    this.throttled = new ThrottledLog(log);
    this.declined = metrics.counter({ name: 'operations_declined_total', help: 'Operations that were not begun here.', labels: ['reason'] });
    this.ahead = metrics.counter({
      name: 'commands_ahead_total',
      help: 'Commands of processes whose clocks are more than 5 s ahead of the one here: they were refused.',
    });
    metrics.gauge({
      name: 'operation_peers',
      help: 'Connections of processes that ask operations of this one.',
      collect: (gauge) => gauge.set(this.peers.size),
    });
    metrics.gauge({
      name: 'operations_running',
      help: 'Operations of other processes that are being carried out.',
      collect: (gauge) => gauge.set(this.running),
    });
    this.listener = new Listener(security, {
      arrived: (socket) => this.meet(socket),
      connected: (socket) => this.accept(socket),
      failed: (error, socket) => this.refuse(error, socket),
    });
  }

  /** @throws StartRefused where anybody could reach it unproven, or where the port is taken */
  async listen(host: string, port: number): Promise<AddressInfo> {
    requireSafe(host, this.needs.security);
    const address = await this.listener.open(host, port);
    this.sweptAt = performance.now();
    this.sweeper = setInterval(() => this.sweep(), SWEEP);
    this.sweeper.unref();
    return address;
  }

  /**
   * Lets nobody in any more and tells every client to go elsewhere; what is in flight, or still arrives, is answered. Resolves when all have left or have nothing
   * more to ask, at the latest after `patience`.
   */
  async drain(patience: number): Promise<void> {
    this.isDraining = true;
    this.askedAt = performance.now();
    this.listener.stopListening();
    for (const { socket } of this.strangers.values()) socket.destroy();
    for (const peer of this.peers) send(peer, MESSAGE.leave, 0);
    for (const began = performance.now(); !this.isLeft && performance.now() - began < patience;) await pause(20);
  }

  async close(): Promise<void> {
    this.isDraining = true;
    clearInterval(this.sweeper);
    this.listener.close();
    for (const { socket } of this.strangers.values()) socket.destroy();
  }

  /** Clients that know no other replica stay: two processes that stop together would wait for each other. */
  private get isLeft(): boolean {
    return this.running === 0 && (this.peers.size === 0 || performance.now() - this.askedAt > QUIET);
  }

  private meet(socket: Socket): void {
    const from = addressOf(socket);
    if (this.strangers.size >= MAX_STRANGERS) {
      const [[name, oldest]] = this.strangers as unknown as [[string, { readonly socket: Socket }]];
      oldest.socket.destroy();
      // At once: the next one may come before it has closed.
      this.strangers.delete(name);
    }
    this.strangers.set(from, { socket, since: performance.now() });
    socket.once('close', () => this.strangers.delete(from));
  }

  private accept(socket: Socket): void {
    const peer: Peer = {
      socket: new FrameSocket(socket, true),
      from: addressOf(socket),
      running: new Map(),
      isLetIn: false,
      heard: 0,
      heardAt: performance.now(),
    };
    peer.socket.on('message', (message: Message) => this.take(peer, message));
    peer.socket.on('error', (error: Error | string) => {
      // A broken connection is an event of every restart; a text is what we have found wrong ourselves.
      if (typeof error === 'string') this.throttled.warn('A connection between services was cut.', { from: peer.from, because: error });
    });
    peer.socket.on('close', () => this.part(peer));
  }

  /** Once a minute at most, and never what was sent. */
  private refuse(error: NodeJS.ErrnoException, socket: Socket): void {
    if (error.code === 'ECONNRESET') return;
    this.throttled.warn('A peer could not prove that it is a service of this cluster.', { from: addressOf(socket), code: error.code });
  }

  private part(peer: Peer): void {
    this.peers.delete(peer);
    // Whoever asked goes elsewhere, or is gone.
    for (const request of peer.running.values()) cancel(request);
    peer.running.clear();
  }

  private take(peer: Peer, message: Message): void {
    if (!peer.isLetIn) {
      this.letIn(peer, message);
      return;
    }
    switch (message.type) {
      case MESSAGE.ping:
        send(peer, MESSAGE.pong, message.id, String(performance.now()));
        break;
      case MESSAGE.request:
        this.queue(peer, message);
        break;
      case MESSAGE.cancel: {
        const request = peer.running.get(message.id);
        if (request === undefined) break;
        peer.running.delete(message.id);
        cancel(request);
        break;
      }
      default:
        peer.socket.cut('a message is of no known type');
    }
  }

  private letIn(peer: Peer, { type, text }: Message): void {
    if (type !== MESSAGE.hello || text !== GREETING) {
      peer.socket.cut('it does not greet as a service of this cluster');
      return;
    }
    if (this.peers.size >= MAX_PEERS) {
      peer.socket.cut('there are too many connections');
      return;
    }
    peer.isLetIn = true;
    peer.socket.letIn();
    this.strangers.delete(peer.from);
    this.peers.add(peer);
    send(peer, MESSAGE.hello, 0, String(performance.now()), GREETING);
    if (this.isDraining) send(peer, MESSAGE.leave, 0);
  }

  /** Nothing begins before everything that has arrived is read: its cancellation may lie right behind a request that waited in the buffer of a process that stood still. */
  private queue(peer: Peer, message: Message): void {
    if (peer.running.has(message.id)) {
      peer.socket.cut('an id is used twice');
      return;
    }
    if (this.running >= MAX_RUNNING || this.held > MAX_HELD) {
      this.decline(peer, message.id, 'busy');
      return;
    }
    const request: Request = { peer, message, context: null, isCancelled: false };
    peer.running.set(message.id, request);
    this.running++;
    this.askedAt = performance.now();
    this.held += message.text.length;
    if (this.queued.push(request) === 1) setImmediate(() => this.beginQueued());
  }

  private beginQueued(): void {
    const requests = this.queued;
    this.queued = [];
    for (const request of requests)
      void this.carryOut(request).finally(() => {
        this.running--;
        this.held -= request.message.text.length;
        if (!request.isCancelled) request.peer.running.delete(request.message.id);
      });
  }

  private async carryOut(request: Request): Promise<void> {
    const { peer, message } = request;
    if (request.isCancelled) return;
    let head, fields: unknown;
    try {
      head = readRequest(message.head);
      fields = JSON.parse(message.text);
    } catch {
      peer.socket.cut('a request is not as it should be');
      return;
    }
    const registered = this.known.get(head.operation);
    if (registered === undefined) {
      this.decline(peer, message.id, 'unknown');
      return;
    }
    const age = Math.max(0, performance.now() - head.sent);
    if (age > head.patience || age >= head.left) {
      this.decline(peer, message.id, 'late');
      return;
    }
    const context: RunningContext = {
      ...head.context,
      deadline: this.needs.clock.now() + Math.min(head.left, LONGEST) - age,
      attempt: head.attempt,
      sentAt: head.sent - head.age,
      receipt: head.transacts === undefined ? {} : { transacts: head.transacts },
    };
    request.context = context;
    if (registered.kind === 'command' && timeOfId(context.commandId) - this.needs.clock.now() > MOST_AHEAD) {
      this.ahead.inc();
      this.throttled.warn('A command was refused: the clock of the process that asked is ahead of the one here.', { from: peer.from });
      this.answerError(request, registered, unavailable('The clocks of this cluster disagree.'));
      return;
    }
    try {
      const operation = messageValidatorOf(registered)(fields);
      operation.context = context;
      this.answer(request, registered, await this.needs.transport.call(operation));
    } catch (error) {
      this.answerError(request, registered, error);
    }
  }

  private answer(request: Request, { options, name }: RegisteredOperation, answer: unknown): void {
    if (options.answers.shape === 'empty') {
      this.reply(request, MESSAGE.empty, '');
      return;
    }
    const text = answer instanceof Serialised ? answer.json : serialiserOf(options.answers)(answer);
    if (text.length > MAX_ANSWER / 4 && Buffer.byteLength(text) > MAX_ANSWER) throw new Error(`The answer of ${name} is too long to be sent.`);
    this.reply(request, answer instanceof Serialised ? MESSAGE.serialised : MESSAGE.answer, text);
  }

  private answerError(request: Request, { name }: RegisteredOperation, error: unknown): void {
    if (error instanceof DomainError) {
      this.reply(request, MESSAGE.refusal, refusalText(error));
      return;
    }
    this.needs.log.error('An operation failed unexpectedly.', { error, operation: name, requestId: request.context?.requestId });
    this.reply(request, MESSAGE.failure, '');
  }

  private reply({ peer, message, context, isCancelled }: Request, type: number, text: string): void {
    if (!isCancelled) send(peer, type, message.id, context === null ? '' : receiptText(context.receipt), text);
  }

  private decline(peer: Peer, id: number, reason: 'busy' | 'late' | 'unknown'): void {
    this.declined.inc({ reason });
    send(peer, MESSAGE.declined, id, '', reason);
  }

  /** Instead of a timer for each message and connection. */
  private sweep(): void {
    const now = performance.now();
    // After a time in which this process stood still, nobody else is to blame for a silence.
    const stoodStill = now - this.sweptAt > 3 * SWEEP;
    this.sweptAt = now;
    if (stoodStill) return;
    for (const { socket, since } of this.strangers.values()) if (now - since > GREETING_TIME) socket.destroy();
    for (const peer of this.peers) {
      if (peer.heard !== peer.socket.heard) {
        peer.heard = peer.socket.heard;
        peer.heardAt = now;
      }
      const fault = peer.socket.fault(now) ?? (now - peer.heardAt > SILENCE ? 'it has been silent for too long' : null);
      if (fault !== null) peer.socket.cut(fault);
    }
  }
}

interface ConnectionEvents {
  /** Before it has shown anything. */
  arrived(socket: Socket): void;
  /** By TLS it has shown who it is; without TLS, it is on this machine. */
  connected(socket: Socket): void;
  failed(error: NodeJS.ErrnoException, socket: Socket): void;
}

/** Nest's server, which holds the listening socket and the open connections. What arrives on them is ours, since operations are no patterns and have no observables. */
class Listener extends ServerTCP {
  private readonly events: ConnectionEvents;
  private readonly refusalOf: ServiceSecurity['refusalOf'];

  constructor({ server, refusalOf }: ServiceSecurity, events: ConnectionEvents) {
    super(server === null ? {} : { tlsOptions: server });
    this.events = events;
    this.refusalOf = refusalOf;
    this.server.maxConnections = MAX_PEERS + 2 * MAX_STRANGERS;
    this.server.on('connection', (socket: Socket) => events.arrived(socket));
    this.server.on('tlsClientError', (error: NodeJS.ErrnoException, socket: Socket) => events.failed(error, socket));
  }

  open(host: string, port: number): Promise<AddressInfo> {
    const server: NetServer = this.server;
    return new Promise((resolve, reject) => {
      const refused = (error: NodeJS.ErrnoException): void =>
        reject(new StartRefused(`SERVICE_HOST ${host} with SERVICE_PORT ${port} cannot be listened on (${error.code ?? error.message}).`));
      server.once('error', refused);
      server.listen(port, host, () => {
        server.off('error', refused);
        resolve(server.address() as AddressInfo);
      });
    });
  }

  stopListening(): void {
    this.server.close();
  }

  override bindHandler(socket: Socket): void {
    const refusal = this.refusalOf(socket);
    if (refusal !== null) {
      this.events.failed(refusal, socket);
      socket.destroy();
      return;
    }
    this.trackOpenSocket(socket);
    this.events.connected(socket);
  }

  /** Told to whoever called `open`; later ones are those of single connections. */
  override handleError(): void {}
}

function send({ socket }: Peer, type: number, id: number, head = '', text = ''): void {
  socket.sendMessage({ type, id, head, text } satisfies Message);
}

function cancel(request: Request): void {
  request.isCancelled = true;
  // Handlers take no signal. They look at the deadline before they append.
  if (request.context !== null) request.context.deadline = 0;
}

function addressOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress ?? 'unknown'}:${remotePort ?? 0}`;
}
