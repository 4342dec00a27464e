import { setTimeout as pause } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { AwaitedViews } from '#libs/event-sourcing/src/awaited-views';
import type { Decision } from '#libs/event-sourcing/src/decider';
import { EventStore, WrongVersion, type NewEvent, type Position } from '#libs/event-sourcing/src/event-store';
import { streamName } from '#libs/event-sourcing/src/naming';
import { decisionContext, metaOf, momentOf } from '#libs/event-sourcing/src/records';
import { Clock } from '#libs/platform/src/clock';
import { DomainError, unavailable } from '#libs/platform/src/domain-error';
import { derivedId } from '#libs/platform/src/ids';
import { Log } from '#libs/platform/src/log';
import type { RequestContext } from '#libs/platform/src/request-context';
import type { Table } from '#libs/read-models/src/read-models';
import { AccessIndex } from '../access/access-index.ts';
import type { OrganizationIndex } from '../access/organization-index.ts';
import type { ResourceEvent } from './resource.events.ts';
import { ResourceRows } from './resource-rows.ts';
import type { Node, ResourceTree } from './resource-tree.ts';
import { resourceAfter, resourcesView, type ResourceRow } from './resources.view.ts';

const CATEGORY = 'resource_tree';
/** Ids of records that a command keeps for each aggregate that it asks; see the repository. */
const IDS_PER_TRANSACT = 1_024;
/** How often a command gives way to those of other replicas. */
const MAX_TRIES = 10;

interface TreeCommand {
  readonly organizationId: string;
  /** The resource whose row it needs, since it changes what the row tells. */
  readonly changes?: (organization: OrganizationIndex) => Node;
  /** `row` is null unless it `changes` one. */
  readonly decide: (organization: OrganizationIndex, row: ResourceRow | null) => Decision<ResourceTree, ResourceEvent>;
}

interface Carried {
  readonly facts: readonly ResourceEvent[];
  /** The rows that it changed, by id; null for what is gone. */
  readonly rows: ReadonlyMap<string, ResourceRow | null>;
}

/**
 * The repository of trees: one stream and one decider for each organization. The state is the tree of the access index, which follows the log and nothing else;
 * nothing is loaded for a command, and its cost does not grow with the tree.
 */
@Injectable()
export class ResourceTrees {
  /** The last command on each tree. */
  private readonly turns = new Map<string, Promise<void>>();
  private readonly table: Table<ResourceRow>;

  constructor(
    private readonly access: AccessIndex,
    private readonly events: EventStore,
    private readonly clock: Clock,
    private readonly log: Log,
    private readonly views: AwaitedViews,
    rows: ResourceRows,
  ) {
    this.table = rows.table;
  }

  /**
   * Carries out a command on one tree: durable, its rows written and its effect seen by checks, when it resolves. Commands of this process take turns; those of
   * other replicas are met by the version of the stream.
   * @throws DomainError as the decision refuses; `lock_timeout` where others were always faster; `service_unavailable` past the context's deadline
   */
  async transact(context: RequestContext, command: TreeCommand): Promise<Carried> {
    const { receipt } = context;
    const firstId = (receipt.transacts ?? 0) * IDS_PER_TRANSACT;
    receipt.transacts = (receipt.transacts ?? 0) + 1;
    return this.inTurn(`${context.environment} ${command.organizationId}`, async () => {
      for (let tries = 0; tries < MAX_TRIES; tries++) {
        const carried = await this.attempt(context, command, firstId);
        if (carried !== null) return carried;
        await pause(Math.random() * 10 * tries);
      }
      throw new DomainError('conflict', 'lock_timeout', 'The resources of this organization are being changed too often; nothing happened, try again.');
    });
  }

  /** Records facts that need no decision, such as the ends of what hung under something deleted, in whatever state the tree is. */
  async record(context: RequestContext, organizationId: string, facts: readonly ResourceEvent[]): Promise<Position> {
    const stream = streamName(CATEGORY, context.environment, organizationId);
    for (;;) {
      if (this.clock.now() > context.deadline) throw unavailable('Too many writes to the same tree at once.');
      const version = (await this.events.last(stream))?.version ?? 0;
      try {
        return (await this.append(context, { organizationId, version, facts, firstId: 0 }, null)).position;
      } catch (error) {
        if (!(error instanceof WrongVersion)) throw error;
      }
    }
  }

  /** Null where another replica was faster. */
  private async attempt(context: RequestContext, { organizationId, changes, decide }: TreeCommand, firstId: number): Promise<Carried | null> {
    const { environment, receipt, deadline } = context;
    if (this.clock.now() > deadline) throw unavailable('Too many changes to the resources of this organization at once.');
    let organization = await this.access.ofOrganization(context, organizationId);
    let row: ResourceRow | null = null;
    if (changes !== undefined) {
      row = await this.rowOf(context, organization.tree, changes(organization));
      if (row === null) return null;
      // What it knew may be old by now.
      organization = await this.access.ofOrganization(context, organizationId);
    }
    const { tree } = organization;
    const { version } = tree;
    const at = momentOf(context.commandId, this.clock.now());
    const facts = decide(organization, row)(tree, decisionContext(context, at));
    if (facts.length === 0) {
      receipt.position = await this.events.head();
      return { facts, rows: new Map() };
    }
    try {
      const { position, rows } = await this.append(context, { organizationId, version, facts, firstId }, row);
      receipt.position = position;
      // Whatever becomes of this: it is recorded, and every check asks the log for its end first.
      await this.access.reached(position, deadline).catch(() => {});
      return { facts, rows };
    } catch (error) {
      if (!(error instanceof WrongVersion)) throw error;
    }
    const news = await this.events.read(streamName(CATEGORY, environment, organizationId), version + 1);
    const last = news.at(-1);
    if (last !== undefined) await this.follow(organization, last, deadline);
    // Another replica was asked as well when this one did not answer.
    return news.some(({ meta }) => meta.commandId === context.commandId) ? { facts: [], rows: new Map() } : null;
  }

  /** The row as the tree knows the resource; null where it has to be asked for again. */
  private async rowOf({ environment, deadline }: RequestContext, tree: ResourceTree, node: Node): Promise<ResourceRow | null> {
    const [id, revision] = [tree.idOf(node), tree.revisionOf(node)];
    const row = await this.table.get(environment, id);
    if (row !== null && row.revision >= revision) return JSON.parse(row.text) as ResourceRow;
    // It could not be written with its event, or is gone by now.
    await this.views.headReached(deadline);
    return null;
  }

  /** A tree that was loaded from rows does not know how many events left none. */
  private async follow(
    { tree }: OrganizationIndex,
    { version, position }: { readonly version: number; readonly position: Position },
    deadline: number,
  ): Promise<void> {
    await this.access.reached(position, deadline);
    tree.version = Math.max(tree.version, version);
  }

  private async append(
    context: RequestContext,
    { organizationId, version, facts, firstId }: { organizationId: string; version: number; facts: readonly ResourceEvent[]; firstId: number },
    row: ResourceRow | null,
  ): Promise<{ readonly position: Position; readonly rows: Carried['rows'] }> {
    const { environment, commandId } = context;
    const at = momentOf(commandId, this.clock.now());
    const meta = metaOf(context, at, organizationId);
    const records = facts.map(({ type, data }, index): NewEvent => ({
      id: derivedId(commandId, firstId + index),
      type,
      shape: 1,
      data,
      subject: null,
      public: [],
      meta,
    }));
    const appended = await this.events.append(streamName(CATEGORY, environment, organizationId), version, records);
    const rows = new Map<string, ResourceRow | null>(row === null ? [] : [[row.id, row]]);
    for (const fact of facts) rows.set(fact.data.id, resourceAfter(rows.get(fact.data.id) ?? null, fact, new Date(at).toISOString()));
    if (!(await this.write(environment, rows, appended))) await this.views.shown(facts, appended.position);
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
        [...rows].map(([id, row]) => ({ environment, id, position, revision: version, text: row === null ? null : JSON.stringify(row), row })),
      );
      return true;
    } catch (error) {
      this.log.warn('A row was not written with its event; the projector writes it.', { view: resourcesView.name, error });
      return false;
    }
  }

  private async inTurn<Done>(key: string, work: () => Promise<Done>): Promise<Done> {
    const done = (this.turns.get(key) ?? Promise.resolve()).then(work);
    const turn = done.then(
      () => {},
      () => {},
    );
    this.turns.set(key, turn);
    try {
      return await done;
    } finally {
      if (this.turns.get(key) === turn) this.turns.delete(key);
    }
  }
}
