import { setTimeout as pause } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import type { Decision, Sealed } from '#libs/event-sourcing/src/deciding/decider';
import { decisionContext, metaOf, momentOf } from '#libs/event-sourcing/src/deciding/records';
import { mayHaveRun, outcomeUnknown, recordedCalls } from '#libs/event-sourcing/src/deciding/repeats';
import { IDS_PER_TRANSACT } from '#libs/event-sourcing/src/deciding/repository';
import { EventStore, WrongVersion, type NewEvent, type Position, type RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import { streamName } from '#libs/event-sourcing/src/log/naming';
import { ReadYourWrites } from '#libs/event-sourcing/src/views/read-your-writes';
import { Clock } from '#libs/platform/src/clock';
import { DomainError, isNotFound, unavailable } from '#libs/platform/src/domain-error';
import { derivedId } from '#libs/platform/src/ids';
import { Log } from '#libs/platform/src/log';
import type { RequestContext } from '#libs/platform/src/request-context';
import { contentOf, type Table } from '#libs/read-models/src/read-models';
import { AccessIndex } from '../access/access-index.ts';
import type { OrganizationIndex } from '../access/organization-index.ts';
import type { Node, ResourceTree } from '../domain/resource-tree.ts';
import type { ResourceEvent } from '../domain/resource.events.ts';
import { resourceAfter, resourcesView, storedText, type ResourceRow } from '../views/resources.view.ts';
import { ResourceRows } from './resource-rows.ts';

const sealed: Sealed<unknown, ResourceEvent> = {
  'resource.created': null,
  'resource.updated': null,
  'resource.moved': null,
  'resource.deleted': null,
  'resource.closing': null,
  'resource.reopened': null,
};

/** The aggregate whose commands this file carries out, instead of a repository. */
export const RESOURCE_TREE = { category: 'resource_tree', sealed } as const;
/** Records that are read at once. */
const PAGE = 100;
/** How often a command gives way to those of other replicas. */
const MAX_TRIES = 10;
/** How many commands that only add are decided together: an append stays far below what any engine takes at once. */
const MAX_TOGETHER = 100;

export interface TreeCommand {
  readonly organizationId: string;
  /** It adds a resource and changes nothing that is there, so others may be decided on the same tree. */
  readonly adds?: true;
  /** The resource whose row it needs, since it changes what the row tells. */
  readonly changes?: (organization: OrganizationIndex) => Node;
  /** `row` is null unless it `changes` one. */
  readonly decide: (organization: OrganizationIndex, row: ResourceRow | null) => Decision<ResourceTree, ResourceEvent>;
}

/** What came of a command on a tree. */
export interface Carried {
  readonly facts: readonly ResourceEvent[];
  /** This very command was carried out before; see the repository. */
  readonly isRepeat: boolean;
  /** Where they were recorded; of a command that was satisfied already, where the log ended at that time. */
  readonly position: Position;
  /** The rows that it changed, by id; null for what is gone. */
  readonly rows: ReadonlyMap<string, ResourceRow | null>;
}

/** A command in the queue of its tree. */
interface Waiting extends TreeCommand {
  readonly context: RequestContext;
  /** Number of the first id of its records. */
  readonly firstId: number;
  tries: number;
  /** Up to this version the stream does not have it. */
  missingUpTo: number;
  readonly resolve: (carried: Carried) => void;
  readonly reject: (error: unknown) => void;
}

/** What follows from the records of one resource, the first being its creation. */
export type Amendment = (organization: OrganizationIndex, told: readonly RecordedEvent[]) => readonly ResourceEvent[];

interface Decided extends Pick<Waiting, 'context' | 'firstId'> {
  readonly facts: readonly ResourceEvent[];
  readonly at: number;
}

/**
 * The repository of trees: one stream and one decider for each organization. The state is the tree of the access index, which follows the log and nothing else;
 * nothing is loaded for a command, and its cost does not grow with the tree.
 */
@Injectable()
export class ResourceTrees {
  private readonly queues = new Map<string, Waiting[]>();
  private readonly table: Table<ResourceRow>;

  constructor(
    private readonly access: AccessIndex,
    private readonly events: EventStore,
    private readonly clock: Clock,
    private readonly log: Log,
    private readonly views: ReadYourWrites,
    rows: ResourceRows,
  ) {
    this.table = rows.table;
  }

  /**
   * Carries out a command on one tree: durable, its rows written and its effect seen by checks, when it resolves. Commands of this process take turns, and those
   * that only add share one; those of other replicas are met by the version of the stream.
   * @throws DomainError as the decision refuses; `lock_timeout` where others were always faster; `service_unavailable` past the context's deadline;
   *   `idempotency_outcome_unknown` where nobody can tell any more whether it was carried out before
   */
  transact(context: RequestContext, command: TreeCommand): Promise<Carried> {
    const { receipt } = context;
    const firstId = (receipt.transacts ?? 0) * IDS_PER_TRANSACT;
    receipt.transacts = (receipt.transacts ?? 0) + 1;
    const key = `${context.environment} ${command.organizationId}`;
    return new Promise((resolve, reject) => {
      const waiting: Waiting = { ...command, context, firstId, tries: 0, missingUpTo: -1, resolve, reject };
      const queue = this.queues.get(key);
      if (queue !== undefined) queue.push(waiting);
      else void this.serve(key, [waiting]);
    });
  }

  /**
   * Records the ends of what died with something deleted, in whatever state the tree is: each once, whoever else tells of it at the same time. `left`: some of those
   * that nothing tells of up to a position, which has to be as new as what it answers. False where there are none.
   */
  async recordEnds(context: RequestContext, organizationId: string, left: (upTo: Position) => Promise<readonly string[]>): Promise<boolean> {
    const stream = streamName(RESOURCE_TREE.category, context.environment, organizationId);
    const last = await this.events.last(stream);
    if (last === null) return false;
    const ids = new Set(await left(last.position));
    if (ids.size === 0) return false;
    for (let { version } = last; ids.size > 0;) {
      const now = this.clock.now();
      if (now > context.deadline) throw tooManyWrites();
      const facts = [...ids].map((id): ResourceEvent => ({ type: 'resource.deleted', data: { id } }));
      try {
        await this.append([{ context, firstId: 0, facts, at: momentOf(context.commandId, now) }], { organizationId, version, row: null });
        break;
      } catch (error) {
        if (!(error instanceof WrongVersion)) throw error;
      }
      for (const news of await this.events.read(stream, version + 1)) {
        version = news.version;
        // Told of by somebody else meanwhile.
        if (news.type === ('resource.deleted' satisfies ResourceEvent['type'])) ids.delete((news.data as ResourceEvent['data']).id);
      }
    }
    return true;
  }

  /**
   * Records what is decided on a tree and on all that its stream tells of one resource, which has to be the latest. Nothing where nothing is decided. With the
   * organization gone there is no place left: the resource ends, unless its stream tells so already.
   * @throws DomainError `service_unavailable` past the context's deadline
   */
  async amend(context: RequestContext, organizationId: string, id: string, decide: Amendment): Promise<void> {
    const stream = streamName(RESOURCE_TREE.category, context.environment, organizationId);
    for (;;) {
      const now = this.clock.now();
      if (now > context.deadline) throw tooManyWrites();
      const { told, version } = await this.toldOf(stream, id);
      // It knows everything by then that was read before.
      const organization = await this.access.ofOrganization(context, organizationId).catch(nullWhereGone);
      const facts = organization === null ? endOf(id, told) : decide(organization, told);
      if (facts.length === 0) return;
      try {
        await this.append([{ context, firstId: 0, facts, at: momentOf(context.commandId, now) }], { organizationId, version, row: rowAfter(told) });
        return;
      } catch (error) {
        if (!(error instanceof WrongVersion)) throw error;
      }
    }
  }

  /** What this command recorded of a resource before, or null: for commands that come again. */
  async recordOf({ environment, commandId }: RequestContext, organizationId: string, id: string, type: ResourceEvent['type']): Promise<RecordedEvent | null> {
    const { told } = await this.toldOf(streamName(RESOURCE_TREE.category, environment, organizationId), id);
    return told.find((record) => record.type === type && record.meta.commandId === commandId) ?? null;
  }

  /** What a stream tells of a resource, from its creation on, and where the stream stands. */
  private async toldOf(stream: string, id: string): Promise<{ readonly told: readonly RecordedEvent[]; readonly version: number }> {
    const told: RecordedEvent[] = [];
    let version = 0;
    for (let from: number | undefined; from !== 0;) {
      const page = await this.events.readBackwards(stream, PAGE, from);
      if (page.length === 0) break;
      version = Math.max(version, page[0]!.version);
      told.push(...page.filter(({ data }) => (data as ResourceEvent['data']).id === id));
      if (told.at(-1)?.type === 'resource.created') break;
      from = page.at(-1)!.version - 1;
    }
    return { told: told.toReversed(), version };
  }

  /** Until nobody waits any more. */
  private async serve(key: string, queue: Waiting[]): Promise<void> {
    this.queues.set(key, queue);
    while (queue.length > 0) {
      const turn = nextTurn(queue);
      const again = await this.attempt(turn).catch((error: unknown) => {
        for (const { reject } of turn) reject(error);
        return [];
      });
      queue.unshift(...again);
      const tries = again[0]?.tries ?? 0;
      if (tries > 0) await pause(Math.random() * 10 * tries);
    }
    this.queues.delete(key);
  }

  /** Settles those whose turn it is, except for those that have to be tried again. */
  private async attempt(turn: readonly Waiting[]): Promise<readonly Waiting[]> {
    // The one that can wait longest; whoever cannot is answered by its gateway.
    const { context, organizationId, changes } = turn.reduce((one, other) => (other.context.deadline > one.context.deadline ? other : one));
    if (this.clock.now() > context.deadline) throw tooMany();
    let organization = await this.access.ofOrganization(context, organizationId);
    let row: ResourceRow | null = null;
    if (changes !== undefined) {
      row = await this.rowOf(context, organization.tree, changes(organization));
      if (row === null) return yielding(turn);
      // What it knew may be old by now.
      organization = await this.access.ofOrganization(context, organizationId);
    }
    const { version } = organization.tree;
    const { decided, satisfied, postponed } = this.decide(await this.withoutRepeated(turn, organization), organization, row);
    if (satisfied.length > 0) await this.answerUnchanged(satisfied, false);
    this.dropLate(decided);
    if (decided.size === 0) return postponed;
    try {
      const { position, rows } = await this.append([...decided.values()], { organizationId, version, row });
      for (const { context: each } of decided.values()) each.receipt.position = position;
      // Who cannot look in time whether it may stay is told that nobody knows: the reaction looks again.
      await this.access.reached(position, context.deadline);
      for (const [waiting, { facts }] of decided) waiting.resolve({ facts, isRepeat: false, position, rows });
      return postponed;
    } catch (error) {
      if (!(error instanceof WrongVersion)) throw error;
    }
    return [...(await this.outrun([...decided.keys()], organization, version)), ...postponed];
  }

  /** All of a turn by the same tree. Of two that would meet, such as by taking the same external id, the later is postponed. */
  private decide(turn: readonly Waiting[], organization: OrganizationIndex, row: ResourceRow | null) {
    const decided = new Map<Waiting, Decided>();
    const [satisfied, postponed]: [Waiting[], Waiting[]] = [[], []];
    const taken = new Set<string>();
    for (const waiting of turn) {
      const { context, firstId, decide, reject } = waiting;
      const at = momentOf(context.commandId, this.clock.now());
      try {
        const facts = decide(organization, row)(organization.tree, decisionContext(context, at));
        const names = facts.flatMap(namesIn);
        if (facts.length === 0) satisfied.push(waiting);
        else if (names.some((name) => taken.has(name))) postponed.push(waiting);
        else decided.set(waiting, { context, firstId, facts, at });
        for (const name of names) taken.add(name);
      } catch (error) {
        reject(error);
      }
    }
    return { decided, satisfied, postponed };
  }

  private async answerUnchanged(waiting: readonly Waiting[], isRepeat: boolean): Promise<void> {
    const position = await this.events.head();
    for (const { context, resolve } of waiting) {
      context.receipt.position = position;
      resolve({ facts: [], isRepeat, position, rows: new Map() });
    }
  }

  /**
   * Those of a turn that were not carried out before; the others are answered. Looks where that can be: what reaches the stream after this tree is met by its version.
   * From the end of the stream, since a tree that was loaded from rows does not know how many events left none.
   */
  private async withoutRepeated(turn: readonly Waiting[], { tree, id }: OrganizationIndex): Promise<readonly Waiting[]> {
    const { version } = tree;
    const doubtful = turn.filter(({ context, missingUpTo }) => missingUpTo < version && mayHaveRun(context));
    for (const waiting of turn) if (waiting.missingUpTo < version && !doubtful.includes(waiting)) waiting.missingUpTo = version;
    if (doubtful.length === 0) return turn;
    const { environment } = doubtful[0]!.context;
    const calls = doubtful.map((waiting) => ({ context: waiting.context, firstId: firstIdOf(waiting) }));
    const after = Math.min(...doubtful.map(({ missingUpTo }) => missingUpTo));
    const { records, unknown } = await recordedCalls({ events: this.events, clock: this.clock }, streamName(RESOURCE_TREE.category, environment, id), {
      calls,
      after,
    });
    for (const waiting of doubtful) {
      waiting.missingUpTo = version;
      if (unknown.has(firstIdOf(waiting))) waiting.reject(outcomeUnknown());
    }
    const repeated = doubtful.filter((waiting) => records.has(firstIdOf(waiting)));
    if (repeated.length > 0) await this.answerRepeated(repeated, [...records.values()].flat());
    return turn.filter((waiting) => !records.has(firstIdOf(waiting)) && !unknown.has(firstIdOf(waiting)));
  }

  /** As they stand: what was recorded is seen by checks and told by rows, even if whoever recorded it did not come so far. */
  private async answerRepeated(waiting: readonly Waiting[], records: readonly RecordedEvent[]): Promise<void> {
    const last = records.map(({ position }) => position).reduce((one, other) => (one > other ? one : other));
    await Promise.all([
      this.access.reached(last, Math.max(...waiting.map(({ context }) => context.deadline))),
      this.views.waitForViews(records, last, resourcesView.name),
    ]);
    await this.answerUnchanged(waiting, true);
  }

  /** Nobody waits for them any more, or everybody was told that nothing happened. */
  private dropLate(decided: Map<Waiting, Decided>): void {
    const now = this.clock.now();
    for (const waiting of decided.keys()) {
      if (now <= waiting.context.deadline) continue;
      decided.delete(waiting);
      waiting.reject(tooMany());
    }
  }

  /** Another replica was faster: answers those that it carried out itself, having been asked as well when this one did not answer. */
  private async outrun(waiting: readonly Waiting[], { tree, id }: OrganizationIndex, version: number): Promise<readonly Waiting[]> {
    const [{ context }] = waiting as readonly [Waiting];
    const news = await this.events.read(streamName(RESOURCE_TREE.category, context.environment, id), version + 1);
    const last = news.at(-1);
    if (last !== undefined) {
      await this.access.reached(last.position, context.deadline);
      // A tree that was loaded from rows does not know how many events left none.
      tree.version = Math.max(tree.version, last.version);
    }
    const recorded = new Set(news.map((record) => record.id));
    const done = waiting.filter((one) => recorded.has(firstIdOf(one)));
    if (done.length > 0) await this.answerRepeated(done, news);
    const rest = waiting.filter((one) => !done.includes(one));
    for (const one of rest) one.missingUpTo = Math.max(one.missingUpTo, last?.version ?? version);
    return yielding(rest);
  }

  /** The row as the tree knows the resource; null where it has to be asked for again. */
  private async rowOf({ environment, deadline }: RequestContext, tree: ResourceTree, node: Node): Promise<ResourceRow | null> {
    const [id, revision] = [tree.idOf(node), tree.revisionOf(node)];
    const row = await this.table.get(environment, id);
    if (row !== null && row.revision >= revision) return contentOf(row);
    // It could not be written with its event, or is gone by now.
    await this.views.waitForHead(deadline);
    return null;
  }

  private async append(
    decided: readonly Decided[],
    { organizationId, version, row }: { readonly organizationId: string; readonly version: number; readonly row: ResourceRow | null },
  ): Promise<{ readonly position: Position; readonly rows: Carried['rows'] }> {
    const { environment } = decided[0]!.context;
    const records = decided.flatMap(({ context, firstId, facts, at }) => recordsOf(context, firstId, facts, metaOf(context, at, organizationId)));
    const appended = await this.events.append(streamName(RESOURCE_TREE.category, environment, organizationId), version, records);
    const rows = new Map<string, ResourceRow | null>(row === null ? [] : [[row.id, row]]);
    for (const { facts, at } of decided)
      for (const fact of facts) rows.set(fact.data.id, resourceAfter(rows.get(fact.data.id) ?? null, fact, new Date(at).toISOString()));
    if (!(await this.write(environment, rows, appended))) await this.views.waitForViews(records, appended.position);
    return { position: appended.position, rows };
  }

  /** After the append nothing may change the answer: false where the projector has to write the rows. */
  private async write(
    environment: string,
    rows: Carried['rows'],
    { position, version }: { readonly position: Position; readonly version: number },
  ): Promise<boolean> {
    try {
      await this.table.write(
        [...rows].map(([id, row]) => ({ environment, id, position, revision: version, text: row === null ? null : storedText(row), row })),
      );
      return true;
    } catch (error) {
      this.log.warn('A row was not written with its event; the projector writes it.', { view: resourcesView.name, error });
      return false;
    }
  }
}

/** The first, and with it those right after it that only add as it does. */
function nextTurn(queue: Waiting[]): readonly Waiting[] {
  const end = queue.findIndex(({ adds }, index) => index > 0 && (adds !== true || index === MAX_TOGETHER));
  return queue.splice(0, queue[0]!.adds === true ? (end === -1 ? queue.length : end) : 1);
}

/** The row of a resource as records tell it. */
export function rowAfter(told: readonly RecordedEvent[]): ResourceRow | null {
  return told.reduce<ResourceRow | null>(
    (row, { type, data, meta }) => resourceAfter(row, { type, data } as ResourceEvent, new Date(meta.at).toISOString()),
    null,
  );
}

/** Of a resource that is not told to be gone yet. */
function endOf(id: string, told: readonly RecordedEvent[]): readonly ResourceEvent[] {
  return rowAfter(told) === null ? [] : [{ type: 'resource.deleted', data: { id } }];
}

function nullWhereGone(error: unknown): null {
  if (!isNotFound(error)) throw error;
  return null;
}

/** The id of its first record, whenever it is carried out. */
function firstIdOf({ context, firstId }: Waiting): string {
  return derivedId(context.commandId, firstId);
}

function tooManyWrites(): DomainError {
  return unavailable('Too many writes to the same tree at once.');
}

function tooMany(): DomainError {
  return unavailable('Too many changes to the resources of this organization at once.');
}

/** Those that may try again. */
function yielding(waiting: readonly Waiting[]): readonly Waiting[] {
  for (const one of waiting)
    if (++one.tries >= MAX_TRIES)
      one.reject(new DomainError('conflict', 'lock_timeout', 'The resources of this organization are being changed too often; nothing happened, try again.'));
  return waiting.filter(({ tries }) => tries < MAX_TRIES);
}

/** What no other command may take at the same time. */
function namesIn({ type, data }: ResourceEvent): readonly string[] {
  return type === 'resource.created' ? [data.id, `${data.resource_type_id} ${data.external_id}`] : [data.id];
}

function recordsOf({ commandId }: RequestContext, firstId: number, facts: readonly ResourceEvent[], meta: NewEvent['meta']): readonly NewEvent[] {
  return facts.map(({ type, data }, index) => ({ id: derivedId(commandId, firstId + index), type, shape: 1, data, subject: null, public: [], meta }));
}
