import { hash } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import type { Environment, EnvironmentKey, EnvironmentKeyWithValue } from '#libs/contracts/src/environments/environment';
import {
  CreateEnvironment,
  CreateEnvironmentKey,
  EnsureEnvironmentKey,
  FindClient,
  FindEnvironmentKey,
  ListEnvironmentKeys,
  ListEnvironments,
  RevokeEnvironmentKey,
  RotateEnvironmentKey,
  type UsableEnvironmentKey,
} from '#libs/contracts/src/environments/operations';
import { Handles } from '#libs/contracts/src/handles';
import type { Decision } from '#libs/event-sourcing/src/deciding/decider';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { ShownSecrets } from '#libs/event-sourcing/src/sealing/shown-secrets';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { Clock } from '#libs/platform/src/clock';
import { DomainError, notFound, unavailable } from '#libs/platform/src/domain-error';
import { derivedId } from '#libs/platform/src/ids';
import { SYSTEM_ENVIRONMENT, type RequestContext } from '#libs/platform/src/request-context';
import { contentOf, ReadModels, type Table } from '#libs/read-models/src/read-models';
import {
  createEnvironment,
  createKey,
  ensureKey,
  environmentDecider,
  isUsable,
  revokeKey,
  rotateKey,
  setClientId,
  type EnvironmentEvent,
  type EnvironmentState,
  type StoredKey,
} from '../domain/environment.decider.ts';
import { allEnvironments, environmentsView, type StoredEnvironment } from '../views/environments.view.ts';

/** Environments lie outside of every environment: their streams and rows are the system's. */
@Injectable()
export class Environments {
  private readonly rows: Table<StoredEnvironment>;

  constructor(
    private readonly repository: Repository,
    private readonly clock: Clock,
    private readonly secrets: ShownSecrets,
    readModels: ReadModels,
  ) {
    this.rows = readModels.table(tableOf(environmentsView));
  }

  @Handles(CreateEnvironment)
  async create({ context, name }: CreateEnvironment): Promise<Environment> {
    return shown(await this.transact(context, newEnvironmentId(context), createEnvironment({ name, client_id: newClientId(context) })));
  }

  @Handles(ListEnvironments)
  async list(): Promise<readonly Environment[]> {
    return (await allEnvironments(this.rows)).map(shown);
  }

  @Handles(CreateEnvironmentKey)
  async createKey({ context, environment_name, name }: CreateEnvironmentKey): Promise<EnvironmentKeyWithValue> {
    const { id } = await this.required(context, 'name', environment_name);
    const value = await this.newKeyValue(context);
    return withValue(value, await this.transact(context, id, createKey(id, { name, ...storable(value) })));
  }

  @Handles(ListEnvironmentKeys)
  async listKeys({ context, environment_name }: ListEnvironmentKeys): Promise<readonly EnvironmentKey[]> {
    const environments = environment_name === undefined ? await allEnvironments(this.rows) : [await this.required(context, 'name', environment_name)];
    return environments.flatMap(({ keys }) => keys.map(toPublicKey));
  }

  @Handles(RotateEnvironmentKey)
  async rotateKey({ context, id, overlap_seconds }: RotateEnvironmentKey): Promise<EnvironmentKeyWithValue> {
    const environment = await this.required(context, 'key_id', id);
    const value = await this.newKeyValue(context);
    return withValue(value, await this.transact(context, environment.id, rotateKey(id, storable(value), overlap_seconds)));
  }

  @Handles(RevokeEnvironmentKey)
  async revokeKey({ context, id }: RevokeEnvironmentKey): Promise<void> {
    const environment = await this.required(context, 'key_id', id);
    await this.transact(context, environment.id, revokeKey(id));
  }

  @Handles(FindEnvironmentKey)
  async findKey({ hash }: FindEnvironmentKey): Promise<UsableEnvironmentKey> {
    const row = await this.found('key_hash', hash);
    // The row says whose key it is; whether it was revoked is asked of the log, which cannot be behind.
    const environment = row === null ? null : await this.repository.load(environmentDecider, SYSTEM_ENVIRONMENT, row.id);
    const key = environment?.keys.find((candidate) => candidate.hash === hash);
    if (environment === null || key === undefined || !isUsable(key, new Date(this.clock.now()).toISOString()))
      throw new DomainError('unauthenticated', 'unauthorized', 'Unauthorized');
    return { ...toPublicKey(key), client_id: environment.client_id };
  }

  @Handles(FindClient)
  async findClient({ client_id }: FindClient): Promise<Environment> {
    const environment = await this.found('client_id', client_id);
    if (environment === null) throw notFound('Client', client_id);
    return shown(environment);
  }

  /** Replicas that start at once ask this at once: the name's claim lets one of them create the environment, and the value is the key's identity. */
  @Handles(EnsureEnvironmentKey)
  async ensureKey({ context, name, value, client_id }: EnsureEnvironmentKey): Promise<Environment> {
    if (client_id !== undefined) await this.refuseClientIdOfAnother(name, client_id);
    const environment = (await this.found('name', name)) ?? (await this.createdBySomeone(context, name, client_id));
    const { id } = environment;
    if (client_id !== undefined) await this.transact(context, id, setClientId(id, client_id));
    const holder = await this.found('key_hash', storable(value).hash);
    return shown(holder ?? (await this.transact(context, id, ensureKey(id, { name: 'given at start', ...storable(value) }))));
  }

  private async createdBySomeone(context: RequestContext, name: string, client_id = newClientId(context)): Promise<StoredEnvironment> {
    try {
      return await this.transact(context, newEnvironmentId(context), createEnvironment({ name, client_id }));
    } catch (error) {
      if (!(error instanceof DomainError && error.code === 'environment_name_already_used')) throw error;
    }
    while (this.clock.now() < context.deadline) {
      const winner = await this.found('name', name);
      if (winner !== null) return winner;
      await pause(20);
    }
    throw unavailable(`The environment '${name}' was created elsewhere and cannot be seen yet.`);
  }

  private async transact(context: RequestContext, id: string, decision: Decision<EnvironmentState, EnvironmentEvent>): Promise<StoredEnvironment> {
    const { state } = await this.repository.transact(environmentDecider, { ...context, environment: SYSTEM_ENVIRONMENT }, id, decision);
    if (state === null) throw notFound('Environment', id);
    return state;
  }

  /** A repeated command makes the same one. */
  private async newKeyValue(context: RequestContext): Promise<string> {
    return `sk_${(await this.secrets.of(context, 'environment_key')).toString('base64url')}`;
  }

  /** @throws DomainError `entity_not_found` */
  private async required({ deadline }: RequestContext, index: 'name' | 'key_id', value: string): Promise<StoredEnvironment> {
    const row = await this.rows.findBy({ environment: SYSTEM_ENVIRONMENT, deadline }, { index, values: [value] });
    if (row === null) throw notFound(index === 'name' ? 'Environment' : 'Environment key', value);
    return contentOf(row);
  }

  /** Only that of the first environment is ever chosen, by who starts it: all others are made from new ids. */
  private async refuseClientIdOfAnother(name: string, clientId: string): Promise<void> {
    const holder = await this.found('client_id', clientId);
    if (holder !== null && holder.name !== name)
      throw new DomainError('conflict', 'client_id_already_used', `The client id '${clientId}' is that of the environment '${holder.name}'.`);
  }

  /** As the rows are: the log is not asked for whoever guesses keys. */
  private async found(index: string, value: string): Promise<StoredEnvironment | null> {
    const { rows } = await this.rows.page(SYSTEM_ENVIRONMENT, { where: { index, values: [value] }, order: 'asc', limit: 1 });
    return rows[0] === undefined ? null : contentOf(rows[0]);
  }
}

/** The hash of a key stays here. */
function toPublicKey({ hash: _, ...key }: StoredKey): EnvironmentKey {
  return key;
}

function shown({ keys: _, ...environment }: StoredEnvironment): Environment {
  return environment;
}

/** @throws DomainError where a repeated command meets the key that it made, but made it with a value of its own: by an earlier release, or before keys were lost */
function withValue(value: string, { keys }: StoredEnvironment): EnvironmentKeyWithValue {
  const key = keys.find((candidate) => candidate.hash === storable(value).hash);
  if (key === undefined) throw unavailable('The key was created, but its value is lost: revoke it and create another.');
  return { ...toPublicKey(key), value };
}

function newEnvironmentId({ commandId }: RequestContext): string {
  return `environment_${derivedId(commandId, 0)}`;
}

function newClientId({ commandId }: RequestContext): string {
  return `client_${derivedId(commandId, 0)}`;
}

function storable(value: string): { readonly hash: string; readonly obfuscated_value: string } {
  return { hash: hash('sha256', value, 'hex'), obfuscated_value: `sk_…${value.slice(-4)}` };
}
