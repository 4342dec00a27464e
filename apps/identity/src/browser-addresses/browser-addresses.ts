import { Injectable } from '@nestjs/common';
import { CorsOrigin, RedirectUri } from '#libs/contracts/src/browser-addresses/browser-addresses';
import {
  CreateCorsOrigin,
  CreateRedirectUri,
  DeleteCorsOrigin,
  DeleteRedirectUri,
  FindCorsOrigin,
  ListCorsOrigins,
  ListRedirectUris,
  type CorsVerdict,
} from '#libs/contracts/src/browser-addresses/operations';
import { Handles } from '#libs/contracts/src/handles';
import type { List, Serialised } from '#libs/contracts/src/operation';
import type { PageQuery } from '#libs/contracts/src/pages';
import { serialiserOf } from '#libs/contracts/src/serialiser';
import type { Decision } from '#libs/event-sourcing/src/deciding/decider';
import { Deletions } from '#libs/event-sourcing/src/deciding/deletions';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { notFound } from '#libs/platform/src/domain-error';
import type { RequestContext } from '#libs/platform/src/request-context';
import { pageOfIds } from '#libs/read-models/src/pages';
import { originOf, requireRedirectUri } from '../domain/browser-address.decider.ts';
import {
  browserAddressesDecider,
  createCorsOrigin,
  createRedirectUri,
  deleteCorsOrigin,
  deleteRedirectUri,
  type BrowserAddressesEvent,
  type BrowserAddressesState,
} from '../domain/browser-addresses.decider.ts';

const serialiseRedirectUri = serialiserOf(RedirectUri);
const serialiseCorsOrigin = serialiserOf(CorsOrigin);

type Decide = Decision<BrowserAddressesState, BrowserAddressesEvent>;

/** Where browsers may be sent, and whose scripts may read answers: one stream for an environment. */
@Injectable()
export class BrowserAddresses {
  constructor(
    private readonly repository: Repository,
    private readonly deletions: Deletions,
  ) {}

  @Handles(CreateRedirectUri)
  async createRedirectUri({ context, uri, default: isDefault = false }: CreateRedirectUri): Promise<RedirectUri> {
    requireRedirectUri(uri, 'uri');
    const { redirect_uris } = await this.transact(context, createRedirectUri(uri, isDefault));
    const created = redirect_uris.find((one) => one.uri === uri);
    if (created === undefined) throw notFound('Redirect URI', uri);
    return created;
  }

  @Handles(ListRedirectUris)
  async listRedirectUris(query: ListRedirectUris): Promise<Serialised<List<RedirectUri>>> {
    const { redirect_uris, deleted } = await this.load(query.context);
    return pageOf(query, { idPrefix: 'redir', listed: redirect_uris, deleted, textOf: serialiseRedirectUri });
  }

  @Handles(DeleteRedirectUri)
  async deleteRedirectUri({ context, id }: DeleteRedirectUri): Promise<void> {
    await this.remove(context, { what: 'Redirect URI', id }, deleteRedirectUri(id));
  }

  @Handles(CreateCorsOrigin)
  async createCorsOrigin({ context, origin: given }: CreateCorsOrigin): Promise<CorsOrigin> {
    const origin = originOf(given, 'origin');
    const { cors_origins } = await this.transact(context, createCorsOrigin(origin));
    const created = cors_origins.find((one) => one.origin === origin);
    if (created === undefined) throw notFound('CORS origin', origin);
    return created;
  }

  @Handles(ListCorsOrigins)
  async listCorsOrigins(query: ListCorsOrigins): Promise<Serialised<List<CorsOrigin>>> {
    const { cors_origins, deleted } = await this.load(query.context);
    return pageOf(query, { idPrefix: 'cors_origin', listed: cors_origins, deleted, textOf: serialiseCorsOrigin });
  }

  @Handles(FindCorsOrigin)
  async findCorsOrigin({ context, origin }: FindCorsOrigin): Promise<CorsVerdict> {
    return { is_listed: (await this.load(context)).cors_origins.some((one) => one.origin === origin) };
  }

  @Handles(DeleteCorsOrigin)
  async deleteCorsOrigin({ context, id }: DeleteCorsOrigin): Promise<void> {
    await this.remove(context, { what: 'CORS origin', id }, deleteCorsOrigin(id));
  }

  private async remove(context: RequestContext, removed: { readonly what: string; readonly id: string }, decision: Decide): Promise<void> {
    await this.deletions.once({ context, ...removed }, () => this.repository.transact(browserAddressesDecider, context, context.environment, decision));
  }

  private load({ environment }: RequestContext): Promise<BrowserAddressesState> {
    return this.repository.load(browserAddressesDecider, environment, environment);
  }

  private async transact(context: RequestContext, decision: Decide): Promise<BrowserAddressesState> {
    return (await this.repository.transact(browserAddressesDecider, context, context.environment, decision)).state;
  }
}

interface Listed<Item extends { readonly id: string }> {
  readonly idPrefix: string;
  readonly listed: readonly Item[];
  readonly deleted: readonly string[];
  readonly textOf: (item: Item) => string;
}

function pageOf<Item extends { readonly id: string }>(
  query: PageQuery<Item>,
  { idPrefix, listed, deleted, textOf }: Listed<Item>,
): Promise<Serialised<List<Item>>> {
  const byId = new Map(listed.map((item) => [item.id, item]));
  return pageOfIds<Item>(query, {
    idPrefix,
    ids: [...byId.keys()].sort(),
    isKnown: (id) => byId.has(id) || deleted.includes(id),
    textsOf: (ids) => ids.map((id) => textOf(byId.get(id)!)),
  });
}
