import { specOf } from '#libs/testing/src/decider-spec';
import {
  changeDirectoryGroup,
  createDirectoryGroup,
  deleteDirectoryGroup,
  directoryGroupDecider,
  dropMembers,
  MembersOutrun,
  type DirectoryGroupEvent,
} from './directory-group.decider.ts';

const { given, id, claims } = specOf(directoryGroupDecider);
const group = id('directory_group');
const directory = { id: 'directory_1', organization_id: 'org_1' };
const ended = { id: group, directory_id: directory.id };
const attributes = { displayName: 'Engineering' };

const created: DirectoryGroupEvent = { type: 'dsync.group.created', data: { ...ended, organization_id: directory.organization_id, attributes } };
const changed = (added: readonly string[], removed: readonly string[] = []): DirectoryGroupEvent => ({
  type: 'directory_group.members_changed',
  data: { ...ended, added, removed },
});
const deleted: DirectoryGroupEvent = { type: 'dsync.group.deleted', data: ended };
const same = (before: object) => ({ ...before });

describe('a group of a directory', () => {
  it('is created, then has members, and claims its name whatever the case', () => {
    given()
      .when(createDirectoryGroup(directory, attributes, []))
      .then(created);
    given()
      .when(createDirectoryGroup(directory, attributes, ['ada']))
      .then(created, changed(['ada']));
    expect(claims(created)).toEqual([['directory_group.display_name', 'directory_1 engineering']]);
  });

  it('announces a change of its attributes alone', () => {
    given(created)
      .when(changeDirectoryGroup(undefined, () => ({ displayName: 'Design' }), null))
      .then({ type: 'dsync.group.updated', data: { ...ended, attributes: { displayName: 'Design' } } });
    given(created)
      .when(changeDirectoryGroup(undefined, same, { version: 1, change: { added: [], removed: [] } }))
      .thenNothing();
  });

  it('changes members at the version at which they were seen', () => {
    const seen = { version: 1, change: { added: ['bob'], removed: ['ada'] } };
    const decide = changeDirectoryGroup(undefined, same, seen);
    expect(() =>
      given(created, changed(['ada']))
        .when(decide)
        .thenNothing(),
    ).toThrow(MembersOutrun);
    expect(() =>
      given(created)
        .when(changeDirectoryGroup(['2'], same, null))
        .thenNothing(),
    ).toThrow('another version');
  });

  it('is deleted once; what is left of its members goes', () => {
    given(created).when(deleteDirectoryGroup(undefined)).then(deleted);
    given(created, deleted).when(dropMembers([])).thenNothing();
    const context = { environment: 'environment_1', now: '2026-01-15T12:00:00.000Z', id };
    expect(dropMembers(['ada'])({ object: 'ended_directory_group', ...ended, organization_id: 'org_1' }, context)).toEqual([changed([], ['ada'])]);
  });
});
