import { LogFollowing } from '#libs/event-sourcing/src/following/memory-follower';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { EventStore, LooksInto, NewEvent, RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import type { View } from '#libs/event-sourcing/src/views/view';
import { streamName } from '#libs/event-sourcing/src/log/naming';
import { SystemClock } from '#libs/platform/src/clock';
import { unavailable, type DomainError } from '#libs/platform/src/domain-error';
import { newUlid } from '#libs/platform/src/ids';
import { Metrics } from '#libs/platform/src/metrics';
import { PinoLog } from '#libs/platform/src/pino.log';
import type { RequestContext } from '#libs/platform/src/request-context';
import { systemContext } from '#libs/platform/src/system-context';
import { organizationResourceId } from '../domain/resource-tree.ts';
import { GivenLog, GivenRows, VIEWS } from '../testing/given-engines.ts';
import { directoryGroupMembersView } from '../views/directories.views.ts';
import { AccessIndex } from './access-index.ts';

const silent = new PinoLog({ level: 'silent', readable: false, destination: { write: () => {} } });

const clock = new SystemClock();
let ids = 0;
const idOf = (prefix: string): string => `${prefix}_${newUlid(1_700_000_000_000 + ++ids)}`;

let log: GivenLog;
let rows: GivenRows;
let index: AccessIndex;
let environment: string;
let permission: { readonly id: string; readonly slug: string };
let role: string;
let type: { readonly id: string; readonly slug: string };

beforeEach(async () => {
  log = new GivenLog();
  rows = new GivenRows(log);
  await model();
  await open();
});
afterEach(() => index.stop());

async function open(memory = 2 ** 30): Promise<void> {
  const following = new LogFollowing(log, clock, silent);
  index = new AccessIndex(
    log,
    rows.awaited(),
    { ACCESS_INDEX_MEMORY: memory, RESOURCES_PER_TYPE: 5_000, MULTIPLE_ROLES: true },
    clock,
    silent,
    following,
    rows,
    new Metrics(),
  );
  await index.start();
}

/** Records what is told of an organization, or of the environment. */
async function tell(what: string, data: object, organization?: string, key = (data as { readonly id?: string }).id ?? ''): Promise<RecordedEvent> {
  const category = what.slice(0, what.indexOf('.'));
  const isOfModel = ['permission', 'resource_type', 'role'].includes(category);
  const ofOrganization = { resource: 'resource_tree', role_mappings: 'organization_roles' }[category];
  const [name, of] = isOfModel ? ['authorization_model', environment] : ofOrganization !== undefined ? [ofOrganization, organization!] : [category, key];
  const stream = streamName(name, environment, of);
  const meta = { environment, ...(organization !== undefined && { organization }), actor: { id: 'a', source: 'system' as const, name: null } };
  const event: NewEvent = {
    ...{ id: newUlid(1_700_000_000_000 + ++ids), type: what, shape: 1, data, subject: null, public: [] },
    meta: { ...meta, requestId: 'r', commandId: 'c', at: 1_700_000_000_000 },
  };
  await log.append(stream, log.all.filter((record) => record.stream === stream).length, [event]);
  return log.all.at(-1)!;
}

/** Another environment: what is told from here on is of that one. */
async function model(): Promise<void> {
  environment = idOf('environment');
  permission = { id: idOf('perm'), slug: 'edit' };
  role = idOf('role');
  type = { id: idOf('resource_type'), slug: 'folder' };
  await tell('permission.created', permission);
  await tell('resource_type.created', { ...type, parents: [] });
  await tell('role.created', { id: role, slug: 'editor', resource_type_id: type.id, resource_type_slug: type.slug, permissions: [permission] });
}

async function organization(): Promise<string> {
  const id = idOf('org');
  await tell('organization.created', { id, name: 'Acme' }, id);
  return id;
}

async function folder(of: string, parent: string = organizationResourceId(of)): Promise<string> {
  const id = idOf('authz_resource');
  const named = { external_id: id.slice(-9), resource_type_id: type.id, resource_type_slug: type.slug, name: 'A folder', description: null };
  await tell('resource.created', { id, organization_id: of, parent_resource_id: parent, ...named }, of);
  return id;
}

async function join(of: string, user = idOf('user'), roles: readonly string[] = []): Promise<string> {
  const id = idOf('om');
  const data = { id, organization_id: of, user_id: user, status: 'active', roles: roles.map((each) => ({ id: each })) };
  await tell('organization_membership.created', data, of, `${of}.${user}`);
  return id;
}

async function assign(of: string, membership: string, resource: string): Promise<void> {
  const data = { id: idOf('role_assignment'), organization_id: of, organization_membership_id: membership, role: { id: role }, resource: { id: resource } };
  await tell('role_assignment.created', data, of, `${membership}.${role}.${resource}`);
}

function context(timeoutMs = 5_000): RequestContext {
  return { ...systemContext(environment, clock.now()), deadline: clock.now() + timeoutMs };
}

/** Whether it is allowed, or what is refused. */
async function ask(membership: string, resource: string, timeoutMs?: number): Promise<boolean | string> {
  try {
    const organizationIndex = await index.ofMembership(context(timeoutMs), membership);
    const node = organizationIndex.tree.nodeById(resource);
    if (node === undefined) return 'no resource';
    return organizationIndex.allows(organizationIndex.membershipNumber(membership), organizationIndex.model.permissionBySlug(permission.slug)!, node);
  } catch (error) {
    return (error as DomainError).code;
  }
}

function signal(): { readonly given: Promise<void>; readonly give: () => void } {
  let give = (): void => {};
  return { given: new Promise<void>((resolve) => (give = resolve)), give: () => give() };
}

async function turns(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await nextTurn();
}

/** Another process that begins to follow the log. */
async function reopen(): Promise<void> {
  await index.stop();
  await open();
}

/** Does something once, before rows of a kind are read for the first time; what it records is heard when the end of the log is asked for after that. */
function whileReading(view: string, happens: () => Promise<void>): void {
  log.heard = log.all.length;
  rows.meanwhile = async (asked, name) => {
    if (asked !== 'page' || !name.startsWith(view)) return;
    rows.meanwhile = () => {};
    await happens();
    log.meanwhile = (what) => void (what === 'head' && (log.heard = Infinity));
  };
}

describe('an organization that is loaded from rows that are ahead of what is heard', () => {
  it('hears of what was deleted before a row was written that it read', async () => {
    const acme = await organization();
    const [shared, other, ada] = [await folder(acme), await folder(acme), await join(acme)];
    await assign(acme, ada, shared);
    await rows.follow();
    expect(await ask(ada, other)).toBe(false);
    await reopen();
    // One replica deletes something, and is about to write so; another one creates something, and has.
    whileReading('authorization_resources', async () => {
      await tell('resource.deleted', { id: shared }, acme);
      await folder(acme, other);
      await rows.writeAtOnce(GivenRows.PRIMARY, log.all.slice(-1));
    });
    expect(await ask(ada, other)).toBe(false);
    expect(await ask(ada, shared)).toBe('no resource');
  });

  it('keeps what was moved under something of which it read no row', async () => {
    const acme = await organization();
    const [shared, ada] = [await folder(acme), await join(acme)];
    await assign(acme, ada, shared);
    await rows.follow();
    let moved = '';
    whileReading('authorization_resources', async () => {
      moved = await folder(acme);
      await tell('resource.moved', { id: shared, parent_resource_id: moved }, acme);
      await rows.writeAtOnce(GivenRows.PRIMARY, log.all.slice(-1));
    });
    await ask(ada, shared);
    expect(await ask(ada, shared)).toBe(true);
    await tell('resource.deleted', { id: moved }, acme);
    expect(await ask(ada, shared)).toBe('no resource');
  });
});

describe('a group of a directory that gives a role', () => {
  let acme: string;
  let shared: string;
  let directory: string;
  let group: string;

  beforeEach(async () => {
    acme = await organization();
    shared = await folder(acme);
    directory = idOf('directory');
    group = idOf('directory_group');
    await tell('directory.created', { id: directory, organization_id: acme, policy: { follows: 'memberships_and_roles' } }, acme);
    await tell('dsync.group.created', { id: group, directory_id: directory }, acme);
  });

  /** Somebody whose membership the directory manages. */
  async function person(): Promise<{ readonly membership: string; readonly id: string }> {
    const [membership, id] = [await join(acme), idOf('directory_user')];
    await tell('organization_membership.updated', { id: membership, managed_by: { directory_id: directory, directory_user_id: id } }, acme);
    return { membership, id };
  }

  const change = (added: readonly string[], removed: readonly string[] = []) =>
    tell('directory_group.members_changed', { id: group, directory_id: directory, added, removed }, acme);
  const map = () =>
    tell('role_mappings.changed', { organization_id: acme, directory_id: directory, added: [{ group_id: group, role_id: role }], removed: [] }, acme);

  it('gives it to whoever is in it when it begins to, wherever that stands by then', async () => {
    const [ada, grace, mary] = [await person(), await person(), await person()];
    await change([ada.id, grace.id]);
    await rows.follow();
    expect(await ask(ada.membership, shared)).toBe(false);
    await change([mary.id], [ada.id]);
    await map();
    expect([await ask(ada.membership, shared), await ask(grace.membership, shared), await ask(mary.membership, shared)]).toEqual([false, true, true]);
    await tell('dsync.group.deleted', { id: group, directory_id: directory }, acme);
    expect(await ask(grace.membership, shared)).toBe(false);
  });

  it('gives it to whoever joins while it is read who is in it', async () => {
    const [ada, grace] = [await person(), await person()];
    await change([ada.id]);
    await rows.follow();
    expect(await ask(ada.membership, shared)).toBe(false);
    let isRead = false;
    rows.meanwhile = async (asked, view) => {
      if (asked !== 'page' || !view.startsWith('authorization_directory_group_members') || isRead) return;
      isRead = true;
      await change([grace.id], [ada.id]);
      await turns();
    };
    await map();
    await ask(ada.membership, shared);
    expect([isRead, await ask(ada.membership, shared), await ask(grace.membership, shared)]).toEqual([true, false, true]);
  });

  it('says nothing that never was so where rows are ahead of what was heard', async () => {
    const [ada, grace] = [await person(), await person()];
    await change([ada.id]);
    await rows.follow();
    expect(await ask(ada.membership, shared)).toBe(false);
    await map();
    log.heard = log.all.length;
    rows.most = 1;
    let pages = 0;
    rows.meanwhile = async (asked, view) => {
      if (asked !== 'page' || !view.startsWith('authorization_directory_group_members')) return;
      if (++pages > 1) return;
      // The first page is read after grace joined and before ada left.
      await change([grace.id]);
      await change([], [ada.id]);
      await rows.writeAtOnce([directoryGroupMembersView as unknown as View<object>], log.all.slice(-2, -1));
      log.meanwhile = (what) => void (what === 'head' && (log.heard = Infinity));
    };
    const first = await index.ofMembership(context(), ada.membership);
    const [node, named] = [first.tree.nodeById(shared)!, first.model.permissionBySlug(permission.slug)!];
    const allowed = [ada, grace].map(({ membership }) => first.allows(first.membershipNumber(membership), named, node));
    expect([pages > 0, ...allowed]).toEqual([true, false, true]);
  });

  it('gives it although it began to while the organization was loaded', async () => {
    const ada = await person();
    await change([ada.id]);
    await rows.follow();
    whileReading('authorization_directories', async () => void (await map()));
    await ask(ada.membership, shared);
    expect(await ask(ada.membership, shared)).toBe(true);
  });

  it.each(['authorization_directory_groups', 'authorization_directory_group_members', 'authorization_directories'])(
    'gives it where rows of %s are late when the organization is loaded',
    async (late) => {
      await index.stop();
      const ada = await person();
      await change([ada.id]);
      await map();
      await rows.follow(VIEWS.filter(({ name }) => name !== late));
      await open();
      expect(await ask(ada.membership, shared)).toBe(true);
    },
  );
});

describe('a membership that was made while its user was deleted', () => {
  it('is dead where the row of the user comes late', async () => {
    const [acme, user] = [await organization(), idOf('user')];
    const shared = await folder(acme);
    await rows.follow();
    await tell('user.deleted', { id: user });
    const ada = await join(acme, user);
    await assign(acme, ada, shared);
    await rows.writeAtOnce(GivenRows.PRIMARY, log.all);
    await reopen();
    expect(await index.ofOrganization(context(), acme).then((found) => found.membershipNumber(ada))).toBe(-1);
  });

  it('is dead where others were asked about when it was heard of, before its organization was read', async () => {
    const [acme, other, user] = [await organization(), await organization(), idOf('user')];
    const [shared, elsewhere] = [await folder(acme), await folder(other)];
    await tell('user.deleted', { id: user });
    await rows.follow();
    await reopen();
    const grace = await join(other);
    expect(await ask(grace, elsewhere)).toBe(false);
    log.heard = log.all.length;
    const [isAsked, isRead] = [signal(), signal()];
    let ada = '';
    rows.meanwhile = async (asked, view) => {
      if (asked === 'get' && view.startsWith('authorization_resources') && ada === '') {
        // The question was there before; this is heard while it is looked whether there is such an organization.
        ada = 'coming';
        await join(other);
        ada = await join(acme, user);
        await assign(acme, ada, shared);
        log.heard = Infinity;
        await isAsked.given;
      }
      if (asked === 'get' && view.startsWith('authorization_ended_users')) {
        isAsked.give();
        await isRead.given;
      }
      if (asked === 'page' && view.startsWith('authorization_resources')) isRead.give();
    };
    await index.ofOrganization(context(), acme);
    expect(await ask(ada, shared)).toBe('entity_not_found');
  });
});

describe('what cannot be known of one keeps nobody else waiting', () => {
  /** Of an organization in which somebody is allowed something; there is one such in this environment, and one in another. */
  async function given(): Promise<() => Promise<boolean | string>> {
    const acme = await organization();
    const [shared, ada, ofEnvironment, ofPermission] = [await folder(acme), await join(acme), environment, permission];
    await assign(acme, ada, shared);
    return () => {
      [environment, permission] = [ofEnvironment, ofPermission];
      return ask(ada, shared, 1_000);
    };
  }

  it('where roles of another environment cannot be folded', async () => {
    const there = await given();
    await model();
    const here = await given();
    await rows.follow();
    expect([await there(), await here()]).toEqual([true, true]);
    await tell('role.created', { id: idOf('role'), slug: 'odd', permissions: 1 });
    expect([await there(), await here()]).toEqual([true, 'service_unavailable']);
    await reopen();
    expect([await there(), await here()]).toEqual([true, 'service_unavailable']);
  });

  it('where it cannot be learned whether the user of a new membership is gone', async () => {
    const [acme, other] = [await given(), await given()];
    await rows.follow();
    expect([await acme(), await other()]).toEqual([true, true]);
    rows.meanwhile = async (_asked, view) => {
      if (view.startsWith('authorization_ended_users')) throw unavailable('The engine is away.');
    };
    await join(log.all.find(({ type: what }) => what === 'organization.created')!.meta.organization!);
    expect([await acme(), await other()]).toEqual(['service_unavailable', true]);
    rows.meanwhile = () => {};
    expect([await acme(), await other()]).toEqual([true, true]);
  });
});

it('what is heard once more, and in smaller pieces, changes nothing', async () => {
  const acme = await organization();
  const [shared, ada] = [await folder(acme), await join(acme)];
  await rows.follow();
  expect(await ask(ada, shared)).toBe(false);
  const before = log.all.length;
  await assign(acme, ada, shared);
  await tell('role_assignment.deleted', { id: idOf('role_assignment') }, acme, `${ada}.${role}.${shared}`);
  expect(await ask(ada, shared)).toBe(false);
  log.again = before;
  log.together = 1;
  await turns();
  expect(await ask(ada, shared)).toBe(false);
});

it('answers nothing from what it knew of a log that was put back while somebody waited', async () => {
  const acme = await organization();
  const [shared, ada] = [await folder(acme), await join(acme)];
  await assign(acme, ada, shared);
  await rows.follow();
  expect(await ask(ada, shared)).toBe(true);
  log.heard = log.all.length;
  await tell('role_assignment.deleted', { id: idOf('role_assignment') }, acme, `${ada}.${role}.${shared}`);
  const asked = ask(ada, shared);
  await turns();
  log.all.length -= 2;
  expect(await asked).toBe('service_unavailable');
});

it('looks into nothing of people that names no organization: the keys of all users are not asked for on its account', async () => {
  await index.stop();
  let looksInto: LooksInto | undefined;
  const subscribe = log.subscribe.bind(log);
  (log as EventStore).subscribe = (after, signal, given) => {
    looksInto = given;
    return subscribe(after, signal);
  };
  await open();
  while (looksInto === undefined) await nextTurn();
  log.heard = log.all.length;
  const [user, organizationId] = [{ id: idOf('user') }, idOf('org')];
  const told = [
    await tell('user.created', user),
    await tell('user.updated', {}, undefined, user.id),
    await tell('user.deleted', {}, undefined, user.id),
    await tell('organization.created', { id: organizationId, name: 'Acme' }, organizationId),
    await tell('permission.created', { id: idOf('perm'), slug: 'read' }),
  ];
  expect(told.filter(looksInto).map(({ type: name }) => name)).toEqual(['user.deleted', 'organization.created', 'permission.created']);
});
