// oxlint-disable-next-line typescript/no-explicit-any -- what a spec reads of an event, it also asserts
type Body = any;

/** What whoever folds the events of an organization knows of its directories and memberships. Refuses an event that says what was so already, that comes before what it is of, or behind its end. */
export class DirectoryConsumer {
  readonly people = new Map<string, { readonly directory: string; readonly key: string; title: string }>();
  readonly groups = new Map<string, { readonly directory: string; readonly name: string; readonly members: Set<string> }>();
  readonly memberships = new Map<string, { readonly isManaged: boolean; readonly role: string }>();
  private readonly ended = new Set<string>();
  private after = '';

  /** `page`: the events of the organization behind this one, oldest first. */
  constructor(private readonly page: (after: string) => Promise<readonly Body[]>) {}

  async read(): Promise<void> {
    for (let events = await this.page(this.after); events.length > 0; events = await this.page(this.after)) {
      for (const { event, data } of events) this.take(event, data);
      this.after = events.at(-1).id;
    }
  }

  /** Who is in which group, by the keys that the product knows people by. */
  get members(): Readonly<Record<string, readonly string[]>> {
    const keyOf = (id: string): string => this.people.get(id)!.key;
    return Object.fromEntries([...this.groups.values()].map(({ name, members }) => [name, [...members].map(keyOf).sort()]));
  }

  private take(event: string, data: Body): void {
    const { people, groups, memberships } = this;
    const once = (isNew: boolean): void => expect([event, data.id, isNew]).toEqual([event, data.id, true]);
    if (event.startsWith('dsync.')) once(!this.ended.has(data.directory_id ?? data.id));
    switch (event) {
      case 'dsync.deleted':
        this.ended.add(data.id);
        for (const known of [people, groups]) for (const [id, { directory }] of known) if (directory === data.id) known.delete(id);
        break;
      case 'dsync.user.created':
        once(!people.has(data.id));
        people.set(data.id, { directory: data.directory_id, key: data.idp_id, title: data.job_title });
        break;
      case 'dsync.user.updated':
        // Of who was erased, nothing is told any more.
        once(people.has(data.id) && (data.job_title === null || people.get(data.id)!.title !== data.job_title));
        people.get(data.id)!.title = data.job_title;
        break;
      case 'dsync.user.deleted':
        once(people.delete(data.id));
        for (const { members } of groups.values()) members.delete(data.id);
        break;
      case 'dsync.group.created':
        once(!groups.has(data.id));
        groups.set(data.id, { directory: data.directory_id, name: data.name, members: new Set() });
        break;
      case 'dsync.group.deleted':
        once(groups.delete(data.id));
        break;
      case 'dsync.group.user_added':
        once(people.has(data.user.id) && !groups.get(data.group.id)!.members.has(data.user.id));
        groups.get(data.group.id)!.members.add(data.user.id);
        break;
      case 'dsync.group.user_removed':
        once(people.has(data.user.id) && (groups.get(data.group.id)?.members.delete(data.user.id) ?? true));
        break;
      case 'organization_membership.created':
      case 'organization_membership.updated':
        once(memberships.has(data.id) === (event === 'organization_membership.updated'));
        memberships.set(data.id, { isManaged: data.directory_managed, role: data.role.slug });
        break;
      case 'organization_membership.deleted':
        once(memberships.delete(data.id));
    }
  }
}
