import { hash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { ApiKey, ApiKeyValidation, type ApiKeyWithValue } from '#libs/contracts/src/api-keys/api-key';
import {
  CreateOrganizationApiKey,
  CreateUserApiKey,
  DeleteApiKey,
  ExpireApiKey,
  ListOrganizationApiKeys,
  ListUserApiKeys,
  ValidateApiKey,
} from '#libs/contracts/src/api-keys/operations';
import { Handles } from '#libs/contracts/src/handles';
import { Serialised, type List } from '#libs/contracts/src/operation';
import type { PageQuery } from '#libs/contracts/src/pages';
import { seedsOf } from '#libs/contracts/src/roles/seeds';
import { serialiserOf } from '#libs/contracts/src/serialiser';
import { Deletions } from '#libs/event-sourcing/src/deciding/deletions';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { CurrentStates, type CurrentStatesOf } from '#libs/event-sourcing/src/following/current-states';
import { ShownSecrets } from '#libs/event-sourcing/src/sealing/shown-secrets';
import { ReadYourWrites } from '#libs/event-sourcing/src/views/read-your-writes';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { BoundedMap } from '#libs/platform/src/bounded-map';
import { Clock } from '#libs/platform/src/clock';
import { DomainError, notFound, refusedField, unavailable, type FieldError } from '#libs/platform/src/domain-error';
import { derivedId } from '#libs/platform/src/ids';
import type { RequestContext } from '#libs/platform/src/request-context';
import { filteredPage } from '#libs/read-models/src/pages';
import { contentOf, ReadModels, type Table } from '#libs/read-models/src/read-models';
import { Stamps, type Stamp } from '#libs/read-models/src/stamps';
import {
  apiKeyDecider,
  createApiKey,
  expireApiKey,
  hasExpired,
  requireApiKey,
  recordRevocation,
  toPublicApiKey,
  type ApiKeyCreated,
  type StoredApiKey,
} from '../domain/api-key.decider.ts';
import { membershipDecider, membershipKey, type StoredMembership } from '../domain/membership.decider.ts';
import { organizationDecider } from '../domain/organization.decider.ts';
import { userDecider } from '../domain/user.decider.ts';
import { DirectoryStandings } from '../readers/directory-standings.ts';
import { EnvironmentSettingsReader } from '../readers/environment-settings-reader.ts';
import { ParentReader } from '../readers/parent-reader.ts';
import { apiKeysView, ownerKey } from '../views/api-keys.view.ts';
import { knownPermissionsView, type KnownPermission } from '../views/known-permissions.view.ts';
import { membershipsOf, membershipsView } from '../views/memberships.view.ts';

const serialise = serialiserOf(ApiKey);
const serialiseValidation = serialiserOf(ApiKeyValidation);
const LAST_TIME = '9999-12-31T23:59:59.999Z';
/** When a key was found valid last. */
export const LAST_USED: Stamp = { name: 'api_key.last_used_at' };
/** Whose hashes one process remembers. */
const MAX_KEYS = 100_000;
const NONE = new Serialised<ApiKeyValidation>(serialiseValidation({ api_key: null }));
/** In an answer about a key; a text within it holds no quotation mark that is not escaped. */
const NEVER_USED = '"last_used_at":null';

/** What its validation depends on, and the answer: up to when it was used last, and from there on. */
interface CurrentKey extends Pick<StoredApiKey, 'owner' | 'organization_id' | 'membership_id' | 'expires_at'> {
  readonly answer: readonly [string, string];
}

@Injectable()
export class ApiKeys {
  private readonly rows: Table<StoredApiKey>;
  private readonly memberships: Table<StoredMembership>;
  private readonly permissions: Table<KnownPermission>;
  /** By their hashes: a key never has another. */
  private readonly ids = new BoundedMap<string>(MAX_KEYS);
  private readonly currentKeys: CurrentStatesOf<CurrentKey | null>;
  private readonly currentOrganizations: CurrentStatesOf<boolean>;
  private readonly currentUsers: CurrentStatesOf<boolean>;
  /** Those that are active. */
  private readonly currentMemberships: CurrentStatesOf<Pick<StoredMembership, 'id' | 'managed_by'> | null>;

  constructor(
    private readonly repository: Repository,
    private readonly secrets: ShownSecrets,
    private readonly views: ReadYourWrites,
    private readonly deletions: Deletions,
    private readonly clock: Clock,
    private readonly stamps: Stamps,
    private readonly environments: EnvironmentSettingsReader,
    private readonly parents: ParentReader,
    private readonly directories: DirectoryStandings,
    private readonly current: CurrentStates,
    readModels: ReadModels,
  ) {
    this.rows = readModels.table(tableOf(apiKeysView));
    this.memberships = readModels.table(tableOf(membershipsView));
    this.permissions = readModels.table(tableOf(knownPermissionsView));
    this.currentKeys = current.of(apiKeyDecider, (state) => (state?.object === 'api_key' ? currentKey(state) : null));
    this.currentOrganizations = current.of(organizationDecider, (state) => state?.object === 'organization');
    this.currentUsers = current.of(userDecider, (state) => state?.object === 'user');
    this.currentMemberships = current.of(membershipDecider, (state) =>
      state?.object === 'organization_membership' && state.status === 'active' ? { id: state.id, managed_by: state.managed_by } : null,
    );
  }

  @Handles(CreateOrganizationApiKey)
  async createForOrganization(operation: CreateOrganizationApiKey): Promise<ApiKeyWithValue> {
    const { context, organization_id } = operation;
    await this.parents.requireOrganization(context, organization_id);
    return this.create(operation, { owner: { type: 'organization', id: organization_id }, organization_id, membership_id: null });
  }

  @Handles(CreateUserApiKey)
  async createForUser(operation: CreateUserApiKey): Promise<ApiKeyWithValue> {
    const { context, user_id, organization_id } = operation;
    await this.parents.requireUser(context, user_id);
    await this.parents.requireOrganization(context, organization_id);
    const membership = await this.memberships.findBy(context, membershipsOf({ user_id, organization_id }, ['active']));
    if (membership === null) throw notMember(user_id, organization_id);
    return this.create(operation, { owner: { type: 'user', id: user_id, organization_id }, organization_id, membership_id: membership.id });
  }

  @Handles(ListOrganizationApiKeys)
  async listOfOrganization(query: ListOrganizationApiKeys): Promise<Serialised<List<ApiKey>>> {
    const { context, organization_id } = query;
    await this.parents.requireOrganization(context, organization_id);
    return this.list(query, organization_id);
  }

  @Handles(ListUserApiKeys)
  async listOfUser(query: ListUserApiKeys): Promise<Serialised<List<ApiKey>>> {
    const { context, user_id, organization_id } = query;
    await this.parents.requireUser(context, user_id);
    if (organization_id !== undefined) await this.parents.requireOrganization(context, organization_id);
    return this.list(query, ownerKey(user_id, organization_id));
  }

  @Handles(DeleteApiKey)
  async delete({ context, id }: DeleteApiKey): Promise<void> {
    await this.deletions.once({ context, what: 'API key', id }, async () => {
      await this.requireWithOwner(context, id);
      return this.repository.transact(apiKeyDecider, context, id, recordRevocation(id));
    });
  }

  @Handles(ExpireApiKey)
  async expire({ context, id, expires_at }: ExpireApiKey): Promise<ApiKey> {
    await this.requireWithOwner(context, id);
    const { state } = await this.repository.transact(apiKeyDecider, context, id, expireApiKey(id, expires_at && stored(expires_at)));
    const [lastUse = null] = await this.stamps.latest(LAST_USED, context.environment, [id]);
    return shown(requireApiKey(state, id), lastUse);
  }

  /**
   * A key is found by its hash and then known as it stands at the end of the log, in memory. A value that is none costs one look at an index: the log is asked nothing, and
   * nothing of it is remembered.
   */
  @Handles(ValidateApiKey)
  async validate({ context: { environment, deadline }, value }: ValidateApiKey): Promise<Serialised<ApiKeyValidation>> {
    const id = await this.idOf(environment, hashOf(value));
    if (id === null) return NONE;
    await this.current.headReached(deadline);
    const key = await this.currentKeys.get(environment, id);
    const now = new Date(this.clock.now()).toISOString();
    if (key === null || hasExpired(key, now) || !(await this.isOwned(environment, key))) return NONE;
    this.stamps.record(LAST_USED, environment, id);
    const [before, after] = key.answer;
    return new Serialised(`${before}"last_used_at":"${now}"${after}`);
  }

  private async create(
    { context, name, permissions = [], expires_at = null }: CreateOrganizationApiKey | CreateUserApiKey,
    owned: Pick<ApiKeyCreated, 'owner' | 'organization_id' | 'membership_id'>,
  ): Promise<ApiKeyWithValue> {
    await this.requirePermissions(context, permissions);
    const id = `api_key_${derivedId(context.commandId, 0)}`;
    const value = `sk_${(await this.secrets.of(context, 'api_key')).toString('base64url')}`;
    const made = {
      ...owned,
      name,
      permissions: [...new Set(permissions)],
      expires_at: expires_at && stored(expires_at),
      hash: hashOf(value),
      obfuscated_value: `sk_…${value.slice(-4)}`,
    };
    const { state } = await this.repository.transact(apiKeyDecider, context, id, createApiKey(made));
    const key = requireApiKey(state, id);
    if (key.hash !== made.hash) throw unavailable('The key was created, but its value is lost: delete it and create another.');
    const [lastUse = null] = await this.stamps.latest(LAST_USED, context.environment, [id]);
    return { ...shown(key, lastUse), value };
  }

  private list(query: PageQuery<ApiKey>, owner: string): Promise<Serialised<List<ApiKey>>> {
    const { environment } = query.context;
    return filteredPage(this.rows, query, {
      idPrefix: 'api_key',
      where: { index: 'owner', values: [owner] },
      textsOf: async (rows) => {
        const lastUses = await this.stamps.latest(
          LAST_USED,
          environment,
          rows.map(({ id }) => id),
        );
        const keys = rows.map(contentOf);
        const areOwned = await this.haveOwners(environment, keys);
        return keys.map((key, index) => (areOwned[index] ? serialise(shown(key, lastUses[index]!)) : null));
      },
    });
  }

  /** @throws DomainError `entity_not_found`, also where what it hangs on was deleted and its own end is still to be recorded */
  private async requireWithOwner(context: RequestContext, id: string): Promise<void> {
    const key = contentOf(await this.rows.require(context, id));
    const [isOwned] = await this.haveOwners(context.environment, [key]);
    if (!isOwned) throw notFound('API key', id);
  }

  private async idOf(environment: string, valueHash: string): Promise<string | null> {
    const known = this.ids.get(environment, valueHash);
    if (known !== undefined) return known;
    const { rows } = await this.rows.page(environment, { where: { index: 'hash', values: [valueHash] }, order: 'asc', limit: 1 });
    if (rows[0] === undefined) return null;
    this.ids.set(environment, valueHash, rows[0].id);
    return rows[0].id;
  }

  /** Whether everything that it hangs on lives at the end of the log, and its membership is active. */
  private async isOwned(environment: string, { owner, organization_id, membership_id }: CurrentKey): Promise<boolean> {
    const isAlive = this.currentOrganizations.get(environment, organization_id);
    if (membership_id === null) return isAlive;
    const [hasOrganization, hasUser, membership] = await Promise.all([
      isAlive,
      this.currentUsers.get(environment, owner.id),
      this.currentMemberships.get(environment, membershipKey(organization_id, owner.id)),
    ]);
    if (!hasOrganization || !hasUser || membership === null || membership.id !== membership_id) return false;
    return this.directories.allow(environment, membership);
  }

  /** Of each whether everything that it hangs on lives, as the rows are. */
  private async haveOwners(environment: string, keys: readonly StoredApiKey[]): Promise<readonly boolean[]> {
    const ofMembers = keys.filter(({ membership_id }) => membership_id !== null);
    const [organizations, users, memberships] = await Promise.all([
      this.parents.organizationsAmong(
        environment,
        keys.map(({ organization_id }) => organization_id),
      ),
      this.parents.usersAmong(
        environment,
        ofMembers.map(({ owner }) => owner.id),
      ),
      this.memberships.presentAmong(
        environment,
        ofMembers.map(({ membership_id }) => membership_id!),
      ),
    ]);
    return keys.map(
      ({ owner, organization_id, membership_id }) =>
        organizations.has(organization_id) && (membership_id === null || (users.has(owner.id) && memberships.has(membership_id))),
    );
  }

  /** @throws DomainError that names each that the environment lacks */
  private async requirePermissions(context: RequestContext, slugs: readonly string[]): Promise<void> {
    const { environment, deadline } = context;
    const { api_key_permissions } = await this.environments.settings(context);
    refuseEach(slugs, 'permission_not_allowed', (slug) =>
      api_key_permissions?.includes(slug) === false ? `API keys cannot have the permission '${slug}'.` : null,
    );
    const seeded = new Set(seedsOf(environment).permissions.map(({ slug }) => slug));
    if (slugs.every((slug) => seeded.has(slug))) return;
    // One that was created or deleted a moment ago: only the end of the log tells.
    await this.views.waitForHead(deadline, this.permissions.definition.name);
    const known = await Promise.all(slugs.map(async (slug) => seeded.has(slug) || (await this.isKnown(environment, slug))));
    refuseEach(slugs, 'permission_not_found', (slug, index) => (known[index] ? null : `There is no permission '${slug}'.`));
  }

  private async isKnown(environment: string, slug: string): Promise<boolean> {
    return (await this.permissions.page(environment, { where: { index: 'slug', values: [slug] }, order: 'asc', limit: 1 })).rows.length > 0;
  }
}

/** @throws DomainError that names each permission that something is wrong with */
function refuseEach(slugs: readonly string[], code: string, whatIsWrong: (slug: string, index: number) => string | null): void {
  const errors = slugs.flatMap((slug, index): FieldError[] => {
    const message = whatIsWrong(slug, index);
    return message === null ? [] : [{ code, field: `permissions.${index}`, message }];
  });
  if (errors.length > 0) throw new DomainError('invalid', 'invalid_request_parameters', errors.map(({ message }) => message).join(' '), { errors });
}

function shown(key: StoredApiKey, last_used_at: string | null): ApiKey {
  return { ...toPublicApiKey(key), last_used_at };
}

function currentKey(key: StoredApiKey): CurrentKey {
  const { owner, organization_id, membership_id, expires_at } = key;
  const [before, after] = serialiseValidation({ api_key: shown(key, null) }).split(NEVER_USED) as [string, string];
  return { owner, organization_id, membership_id, expires_at, answer: [before, after] };
}

function hashOf(value: string): string {
  return hash('sha256', value, 'hex');
}

/** A time that was given anyhow, as all others are stored: then they compare as texts. */
function stored(time: string): string {
  const iso = new Date(time).toISOString();
  // One that lies beyond the year 9999 in UTC alone.
  return iso.startsWith('+') ? LAST_TIME : iso;
}

function notMember(userId: string, organizationId: string): DomainError {
  const message = `The user '${userId}' is no active member of the organization '${organizationId}'.`;
  return refusedField('invalid', 'user_not_organization_member', { field: 'organization_id', message });
}
