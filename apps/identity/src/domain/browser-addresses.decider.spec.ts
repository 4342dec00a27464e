import { specOf } from '#libs/testing/src/decider-spec';
import {
  browserAddressesDecider,
  createCorsOrigin,
  createRedirectUri,
  deleteCorsOrigin,
  deleteRedirectUri,
  type BrowserAddressesEvent,
} from './browser-addresses.decider.ts';

const { given, id } = specOf(browserAddressesDecider);

const uriCreated = (ordinal: number, uri = `https://acme.test/${ordinal}`) =>
  ({ type: 'redirect_uri.created', data: { id: id('redir', ordinal), uri } }) as const satisfies BrowserAddressesEvent;
const madeDefault = (ordinal: number) => ({ type: 'redirect_uri.made_default', data: { id: id('redir', ordinal) } }) as const;
const first = [uriCreated(1), madeDefault(1)] as const;
const many = (create: (ordinal: number) => BrowserAddressesEvent) => Array.from({ length: 200 }, (_, ordinal) => create(ordinal + 1));
const origin = (ordinal: number) => ({ type: 'cors_origin.created', data: { id: id('cors_origin', ordinal), origin: `https://${ordinal}.test` } }) as const;

describe('the redirect URIs of an environment', () => {
  it('begin with a default', () => given().when(createRedirectUri('https://acme.test/0', false)).then(uriCreated(0), madeDefault(0)));
  it('leave the default as it is', () =>
    given(...first)
      .when(createRedirectUri('https://acme.test/0', false))
      .then(uriCreated(0)));
  it('are there once', () =>
    given(...first)
      .when(createRedirectUri('https://acme.test/1', false))
      .thenNothing());
  it('may change the default', () =>
    given(...first, uriCreated(2))
      .when(createRedirectUri('https://acme.test/2', true))
      .then(madeDefault(2)));
  it('keep the default while there are others', () => {
    given(...first, uriCreated(2))
      .when(deleteRedirectUri(id('redir', 1)))
      .thenRefused('redirect_uri_is_default');
    given(...first)
      .when(deleteRedirectUri(id('redir', 1)))
      .then({ type: 'redirect_uri.deleted', data: { id: id('redir', 1) } });
    given()
      .when(deleteRedirectUri(id('redir', 1)))
      .thenRefused('entity_not_found');
  });
  it('are at most 200', () =>
    given(...many(uriCreated))
      .when(createRedirectUri('https://acme.test/0', false))
      .thenRefused('bad_request'));
});

describe('the CORS origins of an environment', () => {
  it('are there once', () => {
    given().when(createCorsOrigin('https://0.test')).then(origin(0));
    given(origin(1)).when(createCorsOrigin('https://1.test')).thenRefused('duplicate_cors_origin');
    given(...many(origin))
      .when(createCorsOrigin('https://0.test'))
      .thenRefused('bad_request');
  });
  it('are deleted by id', () => {
    given(origin(1))
      .when(deleteCorsOrigin(id('cors_origin', 1)))
      .then({ type: 'cors_origin.deleted', data: { id: id('cors_origin', 1) } });
    given()
      .when(deleteCorsOrigin(id('cors_origin', 1)))
      .thenRefused('entity_not_found');
  });
});
