import { timingSafeEqual } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { CurrentStates, type CurrentStatesOf } from '#libs/event-sourcing/src/following/current-states';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { addressGroup } from '#libs/platform/src/address-group';
import { BoundedMap } from '#libs/platform/src/bounded-map';
import { Clock } from '#libs/platform/src/clock';
import { DirectorySyncSettings } from '#libs/platform/src/config/settings';
import { isIdOf, newCommandId } from '#libs/platform/src/ids';
import { SYSTEM_ENVIRONMENT, type RequestContext } from '#libs/platform/src/request-context';
import { systemContext } from '#libs/platform/src/system-context';
import { contentOf, ReadModels, type Table } from '#libs/read-models/src/read-models';
import { RequestCounters } from '#libs/read-models/src/request-counters';
import { ShortLived } from '#libs/read-models/src/short-lived';
import { hashOfToken } from '../directories/directory-tokens.ts';
import type { DirectoryAddress } from '../domain/directory-address.decider.ts';
import { acceptCredentials, directoryDecider, refuseCredentials, type StoredDirectory } from '../domain/directory.decider.ts';
import { noSuchResource, ScimError } from '../domain/scim-domain-error.ts';
import { directoryAddressesView } from '../views/directory-addresses.view.ts';
import { organizationsView, type KnownOrganization } from '../views/organizations.view.ts';

/** How long a provider waits for an answer. */
const REQUEST_TIMEOUT_MS = 10_000;
/** Directories whose environments a process remembers. */
const MOST_ADDRESSES = 100_000;
/** So many requests with a token that was revoked, in so long, say that the product does not know of it. */
const REFUSALS = 5;
const REFUSALS_MS = 10 * 60 * 1_000;
const COLLECTION = 'scim_refusals';
const SECOND = 1_000;

/** Who comes by SCIM, and where. */
export interface Admitted {
  readonly directory: StoredDirectory;
  readonly context: RequestContext;
}

/** Who wants to come, as the request says it. */
interface Comer {
  readonly authorization: string | undefined;
  readonly address: string;
  readonly requestId: string;
}

/** Lets the product of a customer into its directory, by a token of that directory. What was recorded before a request is known to it: a token that was revoked lets nobody in. */
@Injectable()
export class ScimAccess {
  private readonly addresses: Table<DirectoryAddress>;
  private readonly organizations: Table<KnownOrganization>;
  private readonly environments = new BoundedMap<string>(MOST_ADDRESSES);
  private readonly directories: CurrentStatesOf<StoredDirectory | null>;

  constructor(
    private readonly repository: Repository,
    private readonly current: CurrentStates,
    private readonly shortLived: ShortLived,
    private readonly counters: RequestCounters,
    private readonly settings: DirectorySyncSettings,
    private readonly clock: Clock,
    readModels: ReadModels,
  ) {
    this.addresses = readModels.table(tableOf(directoryAddressesView));
    this.organizations = readModels.table(tableOf(organizationsView));
    this.directories = current.of(directoryDecider, (state) => (state?.object === 'directory' ? state : null));
  }

  /** The environment of a directory, for whoever notes the request; null where there is none. */
  environmentOf(directoryId: string): string | null {
    return this.environments.get(SYSTEM_ENVIRONMENT, directoryId) ?? null;
  }

  /** @throws ScimError `401`, `403`, `404`, `429` */
  async admit(directoryId: string, { authorization, address, requestId }: Comer): Promise<Admitted> {
    try {
      return await this.known(directoryId, authorization, requestId);
    } catch (error) {
      if (error instanceof ScimError && (error.status === 401 || error.status === 404)) await this.count(`refused ${addressGroup(address)}`);
      throw error;
    }
  }

  private async known(directoryId: string, authorization: string | undefined, requestId: string): Promise<Admitted> {
    const token = /^Bearer +([\x21-\x7e]{1,255})$/i.exec(authorization ?? '')?.[1];
    if (token === undefined) throw unauthorized('The request has no bearer token.');
    const now = this.clock.now();
    const deadline = now + REQUEST_TIMEOUT_MS;
    const environment = await this.find(directoryId, deadline);
    await this.current.headReached(deadline);
    const directory = await this.directories.get(environment, directoryId);
    const organization = directory === null ? null : await this.organizations.find({ environment, deadline }, directory.organization_id);
    if (directory === null || organization === null) throw noSuchResource('directory');
    const hash = hashOfToken(token);
    const own = directory.tokens.find((each) => isSame(each.hash, hash));
    if (own === undefined) return this.refuse(environment, directory, hash);
    await this.count(`directory ${directoryId}`);
    if (directory.is_unlinked) throw new ScimError(403, null, 'The directory is unlinked: nothing is taken until it is linked again.');
    const context: RequestContext = {
      environment,
      actor: { id: own.id, source: 'api', name: null },
      requestId,
      commandId: newCommandId(now),
      deadline,
      receipt: {},
    };
    if (!directory.is_activated || directory.link === 'invalid_credentials')
      await this.repository.transact(
        directoryDecider,
        { ...context, commandId: newCommandId(now), receipt: {} },
        directoryId,
        acceptCredentials(directoryId, contentOf(organization).domains),
      );
    return { directory, context };
  }

  private async find(directoryId: string, deadline: number): Promise<string> {
    const known = this.environments.get(SYSTEM_ENVIRONMENT, directoryId);
    if (known !== undefined) return known;
    const row = isIdOf('directory', directoryId) ? await this.addresses.find({ environment: SYSTEM_ENVIRONMENT, deadline }, directoryId) : null;
    if (row === null) throw noSuchResource('directory');
    const { environment_id } = contentOf(row);
    this.environments.set(SYSTEM_ENVIRONMENT, directoryId, environment_id);
    return environment_id;
  }

  private async refuse(environment: string, directory: StoredDirectory, hash: string): Promise<never> {
    const { id } = directory;
    if (directory.revoked.some((token) => token.hash === hash)) {
      const now = this.clock.now();
      // What was counted before a good token, or before it was linked again, says nothing of it as it is now.
      const key = `${environment} ${id} ${directory.updated_at} ${Math.floor(now / REFUSALS_MS)}`;
      const refused = await this.shortLived.add(COLLECTION, key, 1, now + REFUSALS_MS);
      if (refused >= REFUSALS && directory.link !== 'invalid_credentials') {
        await this.repository.transact(directoryDecider, systemContext(environment, now), id, refuseCredentials(id));
      }
      throw unauthorized('The token was revoked.');
    }
    // Of another directory, in whatever environment that lies: here there is none for it.
    const isKnown = (await this.addresses.get(SYSTEM_ENVIRONMENT, hash)) !== null;
    throw isKnown ? noSuchResource('directory') : unauthorized('The token is none of this directory.');
  }

  /** Of a directory, or of an address that no directory lets in: those who are let in from there go on. */
  private async count(whose: string): Promise<void> {
    const { SCIM_RATE_LIMIT: limit } = this.settings;
    if (limit === null) return;
    const now = this.clock.now();
    const start = now - (now % SECOND);
    if ((await this.counters.add(`scim ${whose}`, { start, length: SECOND, limit })) > limit)
      throw new ScimError(429, null, `At most ${limit} requests per second are taken.`, 1);
  }
}

function isSame(one: string, other: string): boolean {
  return timingSafeEqual(Buffer.from(one), Buffer.from(other));
}

function unauthorized(detail: string): ScimError {
  return new ScimError(401, null, detail);
}
