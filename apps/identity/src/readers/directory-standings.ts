import { Injectable } from '@nestjs/common';
import { CurrentStates, type CurrentStatesOf } from '#libs/event-sourcing/src/following/current-states';
import { EventStore } from '#libs/event-sourcing/src/log/event-store';
import { streamName } from '#libs/event-sourcing/src/log/naming';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { contentOf, ReadModels, type Table } from '#libs/read-models/src/read-models';
import type { StoredDirectoryLink } from '../domain/directory-link.decider.ts';
import { followedDirectory, followedPerson, type FollowedDirectory, type FollowedPerson } from '../domain/followed-directory.decider.ts';
import type { ManagedBy, StoredMembership } from '../domain/membership.decider.ts';
import { directoryLinksView } from '../views/directory-links.view.ts';

type Standing = 'active' | 'inactive' | 'gone';

/** At a time: two directories of an organization have the same person, seldom more. */
const SUCCESSORS = 100;

/** Directories and their people, which directory sync decides on, as the end of the log says: whoever may not work, or is gone, is no member, whether that was recorded of the membership already or not. */
@Injectable()
export class DirectoryStandings {
  private readonly links: Table<StoredDirectoryLink>;
  private readonly people: CurrentStatesOf<Standing>;
  private readonly directories: CurrentStatesOf<FollowedDirectory | null>;

  constructor(
    private readonly events: EventStore,
    private readonly current: CurrentStates,
    readModels: ReadModels,
  ) {
    this.links = readModels.table(tableOf(directoryLinksView));
    this.people = current.read('directory_user', async (environment, id) => {
      const person = await this.person(environment, id);
      return person === null || person.isGone ? 'gone' : person.active ? 'active' : 'inactive';
    });
    this.directories = current.read('directory', async (environment, id) =>
      followedDirectory(await this.events.read(streamName('directory', environment, id))),
    );
  }

  async person(environment: string, id: string): Promise<FollowedPerson | null> {
    return followedPerson(await this.events.read(streamName('directory_user', environment, id)));
  }

  /** As of the last `headReached`, or later. */
  async directory(environment: string, id: string): Promise<FollowedDirectory | null> {
    return this.directories.get(environment, id);
  }

  /** Resolves once everything is known here that was recorded before the call: what is asked for after that is no older. @throws DomainError `service_unavailable` */
  headReached(deadline: number): Promise<void> {
    return this.current.headReached(deadline);
  }

  /** Whether the directory that manages a membership lets it be active, as of the last `headReached`, or later. */
  async allow(environment: string, { id, managed_by }: Pick<StoredMembership, 'id' | 'managed_by'>): Promise<boolean> {
    if (managed_by === null) return true;
    const standing = await this.standingOf(environment, managed_by);
    return standing === 'gone' ? (await this.successors(environment, id)).length > 0 : standing === 'active';
  }

  /** Whether somebody is there, and active, whose directory is followed, as of the last `headReached`, or later. */
  async manages(environment: string, { directory_id, directory_user_id }: ManagedBy): Promise<boolean> {
    const directory = await this.directories.get(environment, directory_id);
    if (directory === null || directory.end !== null || directory.policy.follows === 'off') return false;
    return (await this.people.get(environment, directory_user_id)) === 'active';
  }

  /** Those people who take a membership over from whoever is gone, and are active: the first who waited for it first. */
  async successors(environment: string, membershipId: string): Promise<readonly ManagedBy[]> {
    const where = { index: 'membership', values: [membershipId] };
    const { rows } = await this.links.page(environment, { where, order: 'asc', limit: SUCCESSORS });
    const waiting = rows.map(contentOf).filter(({ is_manager }) => !is_manager);
    const managers = waiting.map(({ id, directory_id }) => ({ directory_id, directory_user_id: id }));
    const standings = await Promise.all(managers.map((each) => this.standingOf(environment, each)));
    return managers.filter((_, index) => standings[index] === 'active');
  }

  private async standingOf(environment: string, { directory_id, directory_user_id }: ManagedBy): Promise<Standing> {
    const [standing, directory] = await Promise.all([this.people.get(environment, directory_user_id), this.directories.get(environment, directory_id)]);
    return directory?.end === 'end' ? 'gone' : standing;
  }
}
