import 'reflect-metadata';
import { mkdtemp, rm } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hash } from 'node:crypto';
import { Global, Injectable, Module, type Provider, type Type } from '@nestjs/common';
import { DiscoveryModule, NestFactory } from '@nestjs/core';
import { CqrsModule } from '@nestjs/cqrs';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { Blobs } from '#libs/blobs/src/blobs';
import { FilesBlobs } from '#libs/blobs/src/files.blobs';
import type { Environment } from '#libs/contracts/src/environments/environment';
import { FindClient, FindEnvironmentKey, type UsableEnvironmentKey } from '#libs/contracts/src/environments/operations';
import { FindCorsOrigin, type CorsVerdict } from '#libs/contracts/src/browser-addresses/operations';
import { Const, Flag, Id, Integer, Json, MapOfText, OneOf, Optional, Ref, Text } from '#libs/contracts/src/fields';
import { Handles } from '#libs/contracts/src/handles';
import { Command, created, empty, ok, Operation, Query, Serialised, type Answer } from '#libs/contracts/src/operation';
import { LogFollowing } from '#libs/event-sourcing/src/following/memory-follower';
import { LmdbEventStore } from '#libs/event-sourcing/src/lmdb/lmdb.event-store';
import { EventStore } from '#libs/event-sourcing/src/log/event-store';
import { WholeLog } from '#libs/event-sourcing/src/log/log-damage';
import { LmdbKeyStore } from '#libs/event-sourcing/src/sealing/lmdb.key-store';
import { KeyStore } from '#libs/event-sourcing/src/sealing/key-store';
import { DirectOperationTransport } from '#libs/messaging/src/direct.operation-transport';
import { Handlers, LocalServices } from '#libs/messaging/src/handlers';
import { OperationTransport } from '#libs/messaging/src/operation-transport';
import { Clock, SystemClock } from '#libs/platform/src/clock';
import { readSettings } from '#libs/platform/src/config/setting';
import { GatewaySettings, PlatformSettings, ProxySettings } from '#libs/platform/src/config/settings';
import { DomainError, notFound, unavailable } from '#libs/platform/src/domain-error';
import { derivedId, newUlid } from '#libs/platform/src/ids';
import { Log } from '#libs/platform/src/log';
import { Metrics } from '#libs/platform/src/metrics';
import { OperationsSurface } from '#libs/platform/src/operations/operations-surface';
import { Positions } from '#libs/platform/src/positions';
import { Readiness } from '#libs/platform/src/readiness';
import { ManyReplicas, OnlyReplica, Replicas } from '#libs/platform/src/replicas';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { LmdbShortLived } from '#libs/read-models/src/lmdb.short-lived';
import { ShortLived } from '#libs/read-models/src/short-lived';
import { KeptLog } from '#libs/testing/src/kept-log';
import { GatewayAdapter } from '../gateway.adapter.ts';
import { GatewayModule } from '../gateway.module.ts';

/** A slice of its own, so that the gateway's specs depend on no service. */
class Note {
  @Const('note') object!: 'note';
  @Id('note', { doc: 'Identifies the note.' }) id!: string;
  @Text({ doc: 'What it says.', max: 100 }) text!: string;
  @Json({ doc: 'What the operation knew of its request.' }) seen!: unknown;
}

@Operation({
  post: '/notes',
  owner: 'identity',
  summary: 'Create a note',
  answers: created(Note),
  refuses: ['domain_already_exists'],
  limit: { requests: 500, perSeconds: 60 },
})
class CreateNote extends Command<Note> {
  @Picked() text!: string;
  @Optional() @MapOfText({ doc: 'Your own data.' }) metadata?: Readonly<Record<string, string | null>>;
}

@Operation({ get: '/notes/{id}', owner: 'identity', summary: 'Get a note', answers: ok(Note) })
class GetNote extends Query<Note> {
  @Ref(() => Note, { doc: 'The note.' }) id!: string;
}

@Operation({ get: '/notes/label/{label}', owner: 'identity', summary: 'Get a note by its label', answers: ok(Note) })
class GetNoteByLabel extends Query<Note> {
  @Text({ doc: 'The label.', max: 128 }) label!: string;
}

@Operation({ delete: '/notes/label/{label}', owner: 'identity', summary: 'Delete a note by its label', answers: empty(204) })
class DeleteNoteByLabel extends Command<void> {
  @Text({ doc: 'The label.', max: 128 }) label!: string;
}

@Operation({ get: '/notes/label/{name}/authors', owner: 'identity', summary: 'Get the author', answers: ok(Note) })
class GetAuthors extends Query<Note> {
  @Text({ doc: 'The label.', max: 128 }) name!: string;
}

@Operation({ get: '/notes/{id}/pins', owner: 'identity', summary: 'Get the pinned form', answers: ok(Note) })
class GetPins extends Query<Note> {
  @Ref(() => Note, { doc: 'The note.' }) id!: string;
  @Optional() @OneOf(['red', 'blue'], { doc: 'Only of this colour.' }) colour?: 'red' | 'blue';
}

@Operation({ delete: '/notes/{id}', owner: 'identity', summary: 'Delete a note', answers: empty(204) })
class DeleteNote extends Command<void> {
  @Ref(() => Note, { doc: 'The note.' }) id!: string;
}

@Operation({ delete: '/notes', owner: 'identity', summary: 'Delete what says so', answers: empty(202), body: true })
class DeleteNotes extends Command<void> {
  @Text({ doc: 'What they say.', max: 100 }) text!: string;
}

@Operation({ post: '/notes/import', owner: 'identity', summary: 'Import a note', answers: created(Note), maxBody: 128 * 1024 })
class ImportNote extends Command<Note> {
  @Picked() text!: string;
  @Optional() @Json({ doc: 'Anything.' }) anything?: unknown;
}

@Operation({ post: '/notes/check', owner: 'identity', summary: 'Check a text', answers: ok(Note) })
class CheckNote extends Query<Note> {
  @Text({ doc: 'The text.', max: 100 }) text!: string;
}

@Operation({
  get: '/clients/{client_id}/notes',
  owner: 'identity',
  summary: 'Get the note of a client',
  answers: ok(Note),
  environmentFrom: 'client_id',
  cachedFor: 300,
})
class GetNoteOfClient extends Query<Note> {
  @Text({ doc: 'Names the environment.', max: 128 }) client_id!: string;
}

@Operation({
  post: '/clients/notes',
  owner: 'identity',
  summary: 'Create a note of a client',
  answers: created(Note),
  refuses: ['invalid_client'],
  environmentFrom: 'client_id',
})
class CreateNoteOfClient extends Command<Note> {
  @Text({ doc: 'Names the environment.', max: 128 }) client_id!: string;
  @Picked() text!: string;
  @Optional() @Flag({ doc: 'Whether it is pinned.' }) pinned?: boolean;
  @Optional() @Integer({ doc: 'Where it stands.', minimum: 1 }) place?: number;
}

function Picked(): PropertyDecorator {
  return Text({ doc: 'What it says.', min: 1, max: 100 });
}

/** What the notes do when a text names it; the specs hold the ends. */
@Injectable()
export class Notes {
  /** Command ids in the order of execution. */
  readonly carriedOut: string[] = [];
  /** The how manieth time it was for each of them. */
  readonly attempts: (number | undefined)[] = [];
  readonly deleted: string[] = [];
  /** Awaited by every command whose text is `wait`. */
  gate: Promise<void> = Promise.resolve();
  failures = 0;

  @Handles(CreateNote)
  async create({ text, metadata, context }: CreateNote): Promise<Note> {
    this.carriedOut.push(context.commandId);
    this.attempts.push(context.attempt);
    context.receipt.position = '0000000000000007';
    switch (text) {
      case 'wait':
        await this.gate;
        break;
      case 'taken':
        throw new DomainError('conflict', 'domain_already_exists', 'The domain is taken.');
      case 'away':
        if (this.failures-- > 0) throw unavailable('The engine is away.', 7);
        break;
      case 'bug':
        throw new Error('secret detail');
    }
    return this.note(derivedId(context.commandId, 0), text, { metadata, context });
  }

  @Handles(GetNoteOfClient)
  async ofClient({ context, client_id }: GetNoteOfClient): Promise<Note> {
    return this.note(newUlid(Date.now()), client_id, { context });
  }

  @Handles(CreateNoteOfClient)
  async createOfClient({ context, text, pinned, place }: CreateNoteOfClient): Promise<Note> {
    this.carriedOut.push(context.commandId);
    return this.note(derivedId(context.commandId, 0), text, { context, pinned, place });
  }

  @Handles(ImportNote)
  async import({ text, context }: ImportNote): Promise<Note> {
    return this.note(derivedId(context.commandId, 0), text, {});
  }

  @Handles(GetNote)
  async get({ id, context }: GetNote): Promise<Serialised<Note>> {
    if (!id.startsWith('note_')) throw notFound('Note', id);
    return new Serialised(`{"object":"note","id":"${id}","text":"stored","seen":"${context.environment}"}`);
  }

  @Handles(GetNoteByLabel)
  async byLabel({ label, context }: GetNoteByLabel): Promise<Note> {
    return this.note(newUlid(Date.now()), label, { context });
  }

  @Handles(DeleteNoteByLabel)
  async deleteByLabel({ label }: DeleteNoteByLabel): Promise<void> {
    this.deleted.push(label);
  }

  @Handles(GetAuthors)
  async authors({ name, context }: GetAuthors): Promise<Note> {
    return this.note(newUlid(Date.now()), `authors of ${name}`, { context });
  }

  @Handles(GetPins)
  async pins({ id, colour }: GetPins): Promise<Note> {
    return this.note(id.slice(-26), 'pins', { colour });
  }

  @Handles(DeleteNote)
  async delete({ id }: DeleteNote): Promise<void> {
    this.deleted.push(id);
  }

  @Handles(DeleteNotes)
  async deleteMany({ text }: DeleteNotes): Promise<void> {
    this.deleted.push(text);
  }

  @Handles(CheckNote)
  async check({ text, context }: CheckNote): Promise<Note> {
    this.carriedOut.push(context.commandId);
    return this.note(derivedId(context.commandId, 0), text, {});
  }

  private note(ulid: string, text: string, seen: unknown): Answer<GetNoteByLabel> {
    return { object: 'note', id: `note_${ulid}`, text, seen };
  }
}

export const KEY = 'sk_test_of_the_gateway_specs';

/** Knows one key, until it is revoked. */
@Injectable()
export class Keys {
  readonly usable = new Map([[hash('sha256', KEY, 'hex'), 'environment_01J00000000000000000000000']]);
  asked = 0;

  @Handles(FindEnvironmentKey)
  async find({ hash: digest }: FindEnvironmentKey): Promise<UsableEnvironmentKey> {
    this.asked++;
    const environment = this.usable.get(digest);
    if (environment === undefined) throw new DomainError('unauthenticated', 'unauthorized', 'Unauthorized');
    return { id: `environment_key_${environment.slice(-26)}`, environment_id: environment, name: 'specs', client_id: 'client_specs', expires_at: null };
  }
}

/** The log ends at position 5. */
class FivePositions extends Positions {
  async reached(position: string): Promise<void> {
    if (!/^\d{1,16}$/.test(position) || Number(position) > 5)
      throw new DomainError('invalid', 'position_not_reached', 'The position lies beyond the end of the log.');
  }
}

/** Knows one client id, until it is renamed. */
@Injectable()
export class ClientIds {
  readonly environments = new Map([['client_specs', 'environment_01J00000000000000000000000']]);
  asked = 0;

  @Handles(FindClient)
  async find({ client_id }: FindClient): Promise<Environment> {
    this.asked++;
    const id = this.environments.get(client_id);
    if (id === undefined) throw notFound('Client', client_id);
    return { object: 'environment', id, name: 'specs', client_id, created_at: NOW, updated_at: NOW };
  }
}

/** Lists one origin. */
@Injectable()
class Origins {
  @Handles(FindCorsOrigin)
  async find({ origin, context }: FindCorsOrigin): Promise<CorsVerdict> {
    return { is_listed: origin === 'https://acme.test' && context.environment.endsWith('0') };
  }
}

const NOW = '2026-01-15T12:00:00.000Z';

export interface GivenGateway {
  readonly app: NestFastifyApplication;
  readonly url: string;
  readonly port: number;
  readonly notes: Notes;
  readonly keys: Keys;
  readonly clientIds: ClientIds;
  readonly log: KeptLog;
  readonly directory: string;
  readonly storage: LmdbStorage;
  readonly events: EventStore;
  readonly shortLived: ShortLived;
  /** A request with the key; `path` begins with a slash. */
  request(method: string, path: string, options?: { readonly body?: string; readonly headers?: Readonly<Record<string, string>> }): Promise<Response>;
  post(path: string, value: unknown, headers?: Readonly<Record<string, string>>): Promise<Response>;
  close(): Promise<void>;
}

interface Options {
  readonly directory?: string;
  /** False: as while the process starts. */
  readonly isStarted?: boolean;
  readonly events?: EventStore;
  /** Another replica, on whose engines this one runs, with the same keys. */
  readonly beside?: GivenGateway;
}

/** A running gateway over the notes, on embedded engines in a directory of its own. */
export async function givenGateway(variables: Readonly<Record<string, string>> = {}, options: Options = {}): Promise<GivenGateway> {
  const { directory, isStarted = true, beside } = options;
  const data = directory ?? beside?.directory ?? (await mkdtemp(join(tmpdir(), 'gateway-')));
  const storage = beside?.storage ?? (await LmdbStorage.open({ directory: data }));
  const clock = new SystemClock();
  const log = new KeptLog();
  const readiness = new Readiness();
  const metrics = new Metrics();
  const events = options.events ?? beside?.events ?? new LmdbEventStore(storage);
  const shortLived = beside?.shortLived ?? new LmdbShortLived(storage, clock);
  const settings = readSettings(GatewaySettings, variables);
  const keys = beside?.keys ?? new Keys();
  const clientIds = beside?.clientIds ?? new ClientIds();
  const values: Exclude<Provider, Type>[] = [
    { provide: Clock, useValue: clock },
    { provide: Log, useValue: log },
    { provide: Readiness, useValue: readiness },
    { provide: Metrics, useValue: metrics },
    { provide: OperationsSurface, useValue: new OperationsSurface(readiness, metrics, new WholeLog()) },
    { provide: EventStore, useValue: events },
    { provide: LogFollowing, useValue: new LogFollowing(events, clock, log) },
    { provide: ShortLived, useValue: shortLived },
    { provide: Blobs, useValue: await FilesBlobs.open({ directory: join(data, 'blobs') }) },
    { provide: Positions, useClass: FivePositions },
    { provide: KeyStore, useValue: await LmdbKeyStore.open(storage.keys, []) },
    { provide: Replicas, useClass: beside === undefined ? OnlyReplica : ManyReplicas },
    { provide: Keys, useValue: keys },
    { provide: ClientIds, useValue: clientIds },
    { provide: GatewaySettings, useValue: settings },
    { provide: PlatformSettings, useValue: readSettings(PlatformSettings, variables) },
    { provide: OperationTransport, useClass: DirectOperationTransport },
    { provide: LocalServices, useValue: new LocalServices([]) },
  ];

  @Global()
  @Module({ imports: [CqrsModule.forRoot(), DiscoveryModule], providers: [...values, Handlers, Notes, Origins], exports: values.map((value) => value.provide) })
  class Runtime {}
  @Module({ imports: [Runtime, GatewayModule] })
  class App {}

  const app = await NestFactory.create<NestFastifyApplication>(App, new GatewayAdapter({ ...settings, ...readSettings(ProxySettings, variables) }), {
    bodyParser: false,
    logger: ['error', 'fatal'],
  });
  await app.listen(0, '127.0.0.1');
  if (isStarted) readiness.start();
  const { port } = app.getHttpServer().address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  const request: GivenGateway['request'] = (method, path, { body, headers } = {}) =>
    fetch(url + path, { method, headers: { Authorization: `Bearer ${KEY}`, ...headers }, body: body ?? null });
  return {
    app,
    url,
    port,
    notes: app.get(Notes),
    keys,
    clientIds,
    log,
    directory: data,
    storage,
    events,
    shortLived,
    request,
    post: (path, value, headers) => request('POST', path, { body: JSON.stringify(value), headers: { 'Content-Type': 'application/json', ...headers } }),
    close: async () => {
      await app.close();
      if (beside !== undefined) return;
      await storage.close();
      if (directory === undefined) await rm(data, { recursive: true });
    },
  };
}
