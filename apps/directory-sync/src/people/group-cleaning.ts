import { Injectable } from '@nestjs/common';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { allDone } from '#libs/platform/src/all-done';
import { Clock } from '#libs/platform/src/clock';
import { systemContext } from '#libs/platform/src/system-context';
import { ReadModels, type Table } from '#libs/read-models/src/read-models';
import { directoryGroupDecider, dropMembers } from '../domain/directory-group.decider.ts';
import { GroupMembers } from '../readers/group-members.ts';
import { directoryGroupMembersView, groupOfMember, userOfMember, type DirectoryGroupMember } from '../views/directory-groups.view.ts';

const GROUPS_AT_ONCE = 16;
const ROWS_AT_ONCE = 1_000;

/** Takes people out of groups where one of the two is gone. May be broken off and begun again anywhere. */
@Injectable()
export class GroupCleaning {
  private readonly members: Table<DirectoryGroupMember>;

  constructor(
    private readonly repository: Repository,
    private readonly groups: GroupMembers,
    private readonly clock: Clock,
    readModels: ReadModels,
  ) {
    this.members = readModels.table(tableOf(directoryGroupMembersView));
  }

  /** As rows know it: whoever joined a group at this moment is met by the reaction. */
  async leaveGroups(environment: string, userId: string): Promise<void> {
    await this.each(environment, 'user', userId, GROUPS_AT_ONCE, (ids) => allDone(ids.map((id) => this.drop(environment, groupOfMember(id), [userId]))));
  }

  async emptyGroup(environment: string, groupId: string): Promise<void> {
    await this.each(environment, 'group', groupId, ROWS_AT_ONCE, (ids) => this.drop(environment, groupId, ids.map(userOfMember)));
  }

  async drop(environment: string, groupId: string, userIds: readonly string[]): Promise<void> {
    const left = [...(await this.groups.among(environment, groupId, userIds))];
    await this.repository.transact(directoryGroupDecider, systemContext(environment, this.clock.now()), groupId, dropMembers(left));
  }

  private async each(
    environment: string,
    index: 'user' | 'group',
    id: string,
    limit: number,
    work: (ids: readonly string[]) => Promise<unknown>,
  ): Promise<void> {
    for (let after: string | undefined, more = true; more;) {
      const page = await this.members.page(environment, { where: { index, values: [id] }, order: 'asc', limit, after });
      if (page.rows.length > 0) await work(page.rows.map((row) => row.id));
      after = page.rows.at(-1)?.id;
      more = page.hasAfter;
    }
  }
}
