import { specOf } from '#libs/testing/src/decider-spec';
import {
  acceptCredentials,
  createDirectory,
  createToken,
  deleteDirectory,
  directoryDecider,
  refuseCredentials,
  revokeToken,
  shownState,
  updateDirectory,
  type DirectoryEvent,
  type StoredDirectory,
} from './directory.decider.ts';

const { given, id } = specOf(directoryDecider);
const directory = id('directory');
const token = id('directory_token');
const fields = { organization_id: 'org_01HZZZZZZZZZZZZZZZZZZZZZZ1', type: 'okta scim v2.0', name: 'Acme', attributes: [] } as const;
const domains = [{ id: 'org_domain_1', domain: 'acme.test' }];

const created: DirectoryEvent = { type: 'directory.created', data: { id: directory, ...fields } };
const deleted: DirectoryEvent = { type: 'dsync.deleted', data: { id: directory } };
const activated: DirectoryEvent = { type: 'dsync.activated', data: { id: directory, domains } };
const unlinked: DirectoryEvent = { type: 'directory.unlinked', data: { id: directory } };
const relinked: DirectoryEvent = { type: 'directory.relinked', data: { id: directory } };
const refused: DirectoryEvent = { type: 'directory.credentials_refused', data: { id: directory } };
const accepted: DirectoryEvent = { type: 'directory.credentials_accepted', data: { id: directory } };
const tokenCreated = (of = token): DirectoryEvent => ({
  type: 'dsync.token.created',
  data: { id: of, token_suffix: '1f9a', hash: `hash of ${of}`, directory_id: directory },
});
const tokenRevoked: DirectoryEvent = { type: 'dsync.token.revoked', data: { id: token, directory_id: directory } };

const stateOf = (...events: readonly DirectoryEvent[]) => {
  const state = events.reduce(
    (before, event) => directoryDecider.evolve(before, { ...event, at: '2026-01-15T12:00:00.000Z', version: 1 }),
    directoryDecider.initial,
  );
  return shownState(state as StoredDirectory);
};

describe('a directory', () => {
  it('is created', () => given().when(createDirectory(fields)).then(created));
  it('stays deleted when its creation is repeated', () => given(created, deleted).when(createDirectory(fields)).thenRefused('entity_not_found'));
  it('changes what is given, and only that', () => {
    given(created)
      .when(updateDirectory(directory, { name: 'Other' }))
      .then({ type: 'directory.updated', data: { id: directory, name: 'Other' } });
    given(created)
      .when(updateDirectory(directory, { name: 'Acme', attributes: [] }))
      .thenNothing();
  });

  it('has a policy, of which each change says all', () => {
    const off = { follows: 'off', unverified_domains: 'ignore', on_delete: 'release' } as const;
    const on = { ...off, follows: 'memberships' } as const;
    const changed: DirectoryEvent = { type: 'directory.updated', data: { id: directory, policy: on } };
    given()
      .when(createDirectory({ ...fields, policy: { follows: 'memberships' } }))
      .then({ type: 'directory.created', data: { id: directory, ...fields, policy: on } });
    given(created)
      .when(updateDirectory(directory, { policy: { follows: 'memberships' } }))
      .then(changed);
    given(created, changed)
      .when(updateDirectory(directory, { policy: { follows: 'memberships' } }))
      .thenNothing();
    given(created)
      .when(updateDirectory(directory, { policy: off }))
      .thenNothing();
  });

  it('says as it ends what becomes of the memberships that it manages', () => {
    const policy = { follows: 'memberships', unverified_domains: 'ignore', on_delete: 'end' } as const;
    given(created, { type: 'directory.updated', data: { id: directory, policy } })
      .when(deleteDirectory(directory))
      .then({ type: 'dsync.deleted', data: { id: directory, memberships: 'end' } });
  });

  it('is switched off and on by hand', () => {
    given(created, activated)
      .when(updateDirectory(directory, { state: 'unlinked' }))
      .then(unlinked);
    given(created, activated, unlinked)
      .when(updateDirectory(directory, { state: 'linked' }))
      .then(relinked);
    given(created)
      .when(updateDirectory(directory, { state: 'linked' }))
      .thenNothing();
    expect([stateOf(created), stateOf(created, unlinked), stateOf(created, unlinked, relinked)]).toEqual(['validating', 'unlinked', 'validating']);
  });

  it('is activated once', () => {
    given(created).when(acceptCredentials(directory, domains)).then(activated);
    given(created, activated).when(acceptCredentials(directory, domains)).thenNothing();
    expect(stateOf(created, activated)).toBe('linked');
  });

  it('has invalid credentials until its product comes with good ones', () => {
    given(created, activated).when(refuseCredentials(directory)).then(refused);
    given(created, activated, refused).when(acceptCredentials(directory, domains)).then(accepted);
    given(created, activated, deleted).when(refuseCredentials(directory)).thenNothing();
    expect([stateOf(created, activated, refused), stateOf(created, activated, refused, accepted)]).toEqual(['invalid_credentials', 'linked']);
  });

  it('has several tokens, up to ten, and revokes each once', () => {
    const create = createToken(directory, { token_suffix: '1f9a', hash: `hash of ${token}` });
    given(created).when(create).then(tokenCreated());
    const ten = Array.from({ length: 10 }, (_, index) => tokenCreated(`directory_token_${index}`));
    given(created, ...ten)
      .when(create)
      .thenRefused('directory_token_limit_reached');
    given(created, tokenCreated()).when(revokeToken(directory, token)).then(tokenRevoked);
  });

  it('is deleted once', () => given(created).when(deleteDirectory(directory)).then(deleted));
});
