import type { DirectoryGroup } from '#libs/contracts/src/directories/directory-group';
import type { Folded } from '#libs/event-sourcing/src/deciding/decider';
import { specOf } from '#libs/testing/src/decider-spec';
import {
  changeDirectoryUser,
  createDirectoryUser,
  customAttributesOf,
  DEFAULT_ATTRIBUTES,
  deleteDirectoryUser,
  directoryUserDecider,
  eraseDirectoryUser,
  tellOfGroups,
  toPublicUser,
  type DirectoryUserEvent,
  type StoredDirectoryUser,
} from './directory-user.decider.ts';

const { given, id, claims } = specOf(directoryUserDecider);
const user = id('directory_user');
const directory = { id: 'directory_1', organization_id: 'org_1', attributes: DEFAULT_ATTRIBUTES };
const group = { object: 'directory_group', id: 'directory_group_1' } as unknown as DirectoryGroup;
const ada = { userName: ' Ada@Acme.test', title: 'Dr' };

const created = (attributes: object = ada): DirectoryUserEvent => ({
  type: 'dsync.user.created',
  data: {
    id: user,
    directory_id: directory.id,
    organization_id: directory.organization_id,
    active: true,
    attributes: { ...attributes },
    custom_attributes: { job_title: 'Dr' },
  },
});
const updated = (attributes: object, active = true): DirectoryUserEvent => ({
  type: 'dsync.user.updated',
  data: { id: user, directory_id: directory.id, was_active: true, active, attributes: { ...attributes }, custom_attributes: { job_title: 'Dr' } },
});
const deleted: DirectoryUserEvent = { type: 'dsync.user.deleted', data: { id: user, directory_id: directory.id, active: true } };
const added: DirectoryUserEvent = { type: 'dsync.group.user_added', data: { directory_id: directory.id, group, group_version: 2 } };
const removed: DirectoryUserEvent = { type: 'dsync.group.user_removed', data: { directory_id: directory.id, group, group_version: 3 } };

describe('a person of a directory', () => {
  it('is created, and claims the user name whatever its case', () => {
    given().when(createDirectoryUser(directory, ada)).then(created());
    expect(claims(created())).toEqual([['directory_user.user_name', 'directory_1 ada@acme.test']]);
    expect(claims(created(), deleted)).toEqual([]);
  });

  it('changes as it is told, at the version that is expected', () => {
    const rename = changeDirectoryUser(directory, ['1'], (attributes) => ({ ...attributes, nickName: 'C' }));
    given(created())
      .when(changeDirectoryUser(directory, undefined, (attributes) => ({ ...attributes, nickName: 'A' })))
      .then(updated({ ...ada, nickName: 'A' }));
    expect(() =>
      given(created(), updated({ ...ada, nickName: 'B' }))
        .when(rename)
        .thenNothing(),
    ).toThrow('another version');
    given(created())
      .when(changeDirectoryUser(directory, ['*'], (attributes) => ({ ...attributes })))
      .thenNothing();
    given(created())
      .when(changeDirectoryUser(directory, undefined, (attributes) => ({ ...attributes, active: false })))
      .then(updated({ ...ada, active: false }, false));
  });

  it('is deleted once, and told nothing of afterwards', () => {
    given(created()).when(deleteDirectoryUser(undefined)).then(deleted);
    given(created(), deleted)
      .when(tellOfGroups([{ group, isMember: true, group_version: 2 }]))
      .thenNothing();
  });

  it('is told once of a group', () => {
    given(created())
      .when(tellOfGroups([{ group, isMember: true, group_version: 2 }]))
      .then(added);
    given(created(), added)
      .when(tellOfGroups([{ group, isMember: false, group_version: 3 }]))
      .then(removed);
    given(created())
      .when(tellOfGroups([{ group, isMember: false, group_version: 2 }]))
      .thenNothing();
    given(created())
      .when(tellOfGroups([2, 3].map((group_version) => ({ group, isMember: true, group_version }))))
      .then(added);
  });

  it.each([
    ['the primary address', { emails: [{ value: 'a@x.test' }, { value: 'b@x.test', primary: true }] }, 'b@x.test'],
    ['that for work', { emails: [{ value: 'a@x.test' }, { value: 'b@x.test', type: 'Work' }] }, 'b@x.test'],
    ['the first', { emails: [{ value: 'a@x.test' }, { value: 'b@x.test' }] }, 'a@x.test'],
    ['the user name where it is an address', { userName: 'ada@x.test' }, 'ada@x.test'],
    ['none', { userName: 'ada' }, null],
  ])('has for its address %s', (_, attributes, email) => {
    const state = directoryUserDecider.evolve(null, { ...created(attributes), at: '2026-01-15T12:00:00.000Z', version: 1 }) as StoredDirectoryUser;
    expect(toPublicUser(state, {}).email).toBe(email);
  });

  it('ends with nothing personal where it was erased, whether its key is gone or not', () => {
    const ended = { ...deleted, data: { ...deleted.data, is_erased: true } } as const;
    given(created()).when(eraseDirectoryUser()).then(ended);
    given(created(), deleted).when(eraseDirectoryUser()).thenNothing();
    given().when(eraseDirectoryUser()).thenNothing();
    for (const attributes of [ada, null]) {
      const fact = { ...created(), data: { ...created().data, attributes }, at: '2026-01-15T12:00:00.000Z', version: 1 };
      const before = directoryUserDecider.evolve(null, fact as Folded<DirectoryUserEvent>);
      const { payload } = directoryUserDecider.toPublicEvent(ended, before, before)!;
      expect(payload).toMatchObject({ id: user, email: null, username: null, idp_id: null, emails: null, raw_attributes: null, custom_attributes: null });
      expect(JSON.stringify(payload)).not.toMatch(/acme|Dr/i);
    }
  });

  it('is nobody once erased', () => {
    const erased = { ...created(), data: { ...created().data, attributes: null, custom_attributes: null }, at: '2026-01-15T12:00:00.000Z', version: 1 };
    const state = directoryUserDecider.evolve(null, erased as Folded<DirectoryUserEvent>) as StoredDirectoryUser;
    expect(toPublicUser(state, {})).toMatchObject({ email: null, idp_id: user, raw_attributes: {} });
    expect(directoryUserDecider.claims!(state)).toEqual([]);
    expect(customAttributesOf(null, DEFAULT_ATTRIBUTES)).toEqual({});
  });
});
