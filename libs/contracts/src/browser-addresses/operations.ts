import { Flag, Optional, Picked, Ref, Text } from '../fields.ts';
import { Command, created, empty, listOf, ok, Operation, Query } from '../operation.ts';
import { PageQuery } from '../pages.ts';
import { CorsOrigin, RedirectUri } from './browser-addresses.ts';

@Operation({
  post: '/user_management/redirect_uris',
  owner: 'identity',
  summary: 'Register a redirect URI',
  description: 'The first is the default. One that is registered already is answered as it is, or becomes the default.',
  answers: created(RedirectUri),
})
export class CreateRedirectUri extends Command<RedirectUri> {
  @Picked(RedirectUri) uri!: string;
  @Optional() @Flag({ doc: 'Whether it becomes the default.' }) default?: boolean;
}

@Operation({ get: '/user_management/redirect_uris', owner: 'identity', summary: 'List redirect URIs', answers: listOf(RedirectUri) })
export class ListRedirectUris extends PageQuery<RedirectUri> {}

@Operation({
  delete: '/user_management/redirect_uris/{id}',
  owner: 'identity',
  summary: 'Delete a redirect URI',
  description: 'The default goes last: make another one the default first.',
  answers: empty(204),
  refuses: ['redirect_uri_is_default'],
})
export class DeleteRedirectUri extends Command<void> {
  @Ref(() => RedirectUri, { doc: 'The redirect URI.' }) id!: string;
}

@Operation({
  post: '/user_management/cors_origins',
  owner: 'identity',
  summary: 'Let scripts of an origin read answers',
  answers: created(CorsOrigin),
  refuses: ['duplicate_cors_origin'],
})
export class CreateCorsOrigin extends Command<CorsOrigin> {
  @Picked(CorsOrigin) origin!: string;
}

@Operation({ get: '/user_management/cors_origins', owner: 'identity', summary: 'List CORS origins', answers: listOf(CorsOrigin) })
export class ListCorsOrigins extends PageQuery<CorsOrigin> {}

@Operation({ delete: '/user_management/cors_origins/{id}', owner: 'identity', summary: 'Delete a CORS origin', answers: empty(204) })
export class DeleteCorsOrigin extends Command<void> {
  @Ref(() => CorsOrigin, { doc: 'The origin.' }) id!: string;
}

/** Whether scripts of an origin may read answers. */
export class CorsVerdict {
  @Flag({ doc: 'Whether the environment lists it.' }) is_listed!: boolean;
}

@Operation({ internal: true, owner: 'identity', summary: 'Tell whether the environment lists an origin', answers: ok(CorsVerdict) })
export class FindCorsOrigin extends Query<CorsVerdict> {
  @Text({ doc: 'The origin, as a browser says it.', max: 300 }) origin!: string;
}
