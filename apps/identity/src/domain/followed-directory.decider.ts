import type { DirectoryEvent } from '#apps/directory-sync/src/domain/directory.decider';
import type { DirectoryUserEvent } from '#apps/directory-sync/src/domain/directory-user.decider';
import type { DirectoryPolicy } from '#libs/contracts/src/directories/directory';
import type { EventDirectoryUser } from '#libs/contracts/src/directories/directory-user';
import type { RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import type { FactOf, Recorded } from '#libs/event-sourcing/src/deciding/decider';

/** A person of a directory, as far as users and memberships follow them. What is personal is null once they are erased. */
export interface FollowedPerson extends Pick<EventDirectoryUser, 'id' | 'directory_id' | 'organization_id'> {
  readonly email: string | null;
  readonly names: Pick<EventDirectoryUser, 'first_name' | 'last_name' | 'name'>;
  readonly active: boolean;
  readonly isGone: boolean;
  /** Of the last record of the stream that says something of the person themselves, and where it stands in the log. */
  readonly version: number;
  readonly position: string;
}

type PersonFact = FactOf<DirectoryUserEvent, 'dsync.user.created' | 'dsync.user.updated' | 'dsync.user.deleted'>;

/** What the stream of a person says. Null where there is nobody. */
export function followedPerson(records: readonly RecordedEvent[]): FollowedPerson | null {
  let person: FollowedPerson | null = null;
  for (const record of records as readonly Recorded<PersonFact>[]) {
    const { version, position } = record;
    switch (record.type) {
      case 'dsync.user.created':
        person = { ...record.data, ...shownOf(record.subject), active: record.data.active, isGone: false, version, position };
        continue;
      case 'dsync.user.updated':
        person = person && { ...person, ...shownOf(record.subject), active: record.data.active, version, position };
        continue;
      case 'dsync.user.deleted':
        person = person && { ...person, isGone: true, version, position };
    }
  }
  if (person === null) return null;
  const { id, directory_id, organization_id, email, names, active, isGone, version, position } = person;
  return { id, directory_id, organization_id, email, names, active, isGone, version, position };
}

function shownOf(subject: unknown): Pick<FollowedPerson, 'email' | 'names'> {
  const { email = null, first_name = null, last_name = null, name = null } = (subject ?? {}) as Partial<EventDirectoryUser>;
  return { email, names: { first_name, last_name, name } };
}

/** A directory, as far as what becomes of its people goes. */
export interface FollowedDirectory {
  readonly organization_id: string;
  readonly policy: DirectoryPolicy;
  /** What becomes of the memberships that it managed; null while it lives. */
  readonly end: DirectoryPolicy['on_delete'] | null;
}

type DirectoryFact = FactOf<DirectoryEvent, 'directory.created' | 'directory.updated' | 'dsync.deleted'>;

/** What the stream of a directory says. Null where there is none. */
export function followedDirectory(records: readonly RecordedEvent[]): FollowedDirectory | null {
  let directory: FollowedDirectory | null = null;
  for (const record of records as readonly Recorded<DirectoryFact>[]) {
    switch (record.type) {
      case 'directory.created': {
        const { organization_id, policy = { follows: 'off', unverified_domains: 'ignore', on_delete: 'release' } } = record.data;
        directory = { organization_id, policy, end: null };
        continue;
      }
      case 'directory.updated':
        directory = directory && { ...directory, policy: record.data.policy ?? directory.policy };
        continue;
      case 'dsync.deleted':
        directory = directory && { ...directory, end: record.data.memberships ?? 'release' };
    }
  }
  return directory;
}
