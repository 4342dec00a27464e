import { Injectable } from '@nestjs/common';
import { Blobs } from '#libs/blobs/src/blobs';
import type { AuditLogExport, AuditLogExportError } from '#libs/contracts/src/audit-log-exports/audit-log-export';
import { CreateAuditLogExport, GetAuditLogExport } from '#libs/contracts/src/audit-log-exports/operations';
import { Handles } from '#libs/contracts/src/handles';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { Clock } from '#libs/platform/src/clock';
import { DomainError, notFound } from '#libs/platform/src/domain-error';
import { derivedId, isIdOf } from '#libs/platform/src/ids';
import { canonicalJson } from '#libs/platform/src/canonical-json';
import { ReadModels, type Table } from '#libs/read-models/src/read-models';
import { Checkpoints } from '../checkpoints/checkpoints.ts';
import { auditExportDecider, createExport, goneAt, type ExportFailure, type StoredAuditExport } from '../domain/audit-export.decider.ts';
import { TrailReader } from '../readers/trail-reader.ts';
import { TrailKeys, type TrailOwner } from '../sealing/trail-keys.ts';
import { auditExportsView } from '../views/audit-exports.view.ts';
import { ExportAddresses } from './export-addresses.ts';
import { filterBinding } from './export-builds.ts';
import type { ExportFilter } from './export-filter.ts';

const PREFIX = 'audit_log_export';
const DAY = 86_400_000;
const LONGEST_RANGE = 366 * DAY;
/** What happened earlier was recorded so long ago, at the latest, that nobody keeps it. */
const OLDEST = (365 + 366 + 1) * DAY;
const CLOCKS_DIFFER = 5 * 60_000;
/** Of an organization: more are refused, so that nobody fills the store, or has others wait. */
const MOST_WAITING = 10;

const MESSAGES: Readonly<Record<ExportFailure, string>> = {
  storage_full: 'The store of files was full, also when it was tried again.',
  storage_unavailable: 'The store of files did not take the export, or did not give back what it was given, also when it was tried again.',
  event_unreadable: 'An event of the trail cannot be read: it is not as it was recorded. An operator has to look.',
  organization_deleted: 'The organization was deleted.',
  too_large: 'The file would have more than 64 GiB: ask for a shorter range, or for less of it.',
  took_too_long: 'The export was not made within a day.',
  internal_error: 'It failed by a fault of ours: the log of the server tells more.',
};

/** Exports of audit trails, as applications ask for them. */
@Injectable()
export class AuditExports {
  private readonly rows: Table<StoredAuditExport>;
  /** Of each organization one is accepted at a time. */
  private readonly accepting = new Map<string, Promise<unknown>>();

  constructor(
    private readonly repository: Repository,
    private readonly reader: TrailReader,
    private readonly keys: TrailKeys,
    private readonly checkpoints: Checkpoints,
    private readonly addresses: ExportAddresses,
    private readonly blobs: Blobs,
    private readonly clock: Clock,
    readModels: ReadModels,
  ) {
    this.rows = readModels.table(tableOf(auditExportsView));
  }

  @Handles(CreateAuditLogExport)
  async create(command: CreateAuditLogExport): Promise<AuditLogExport> {
    const { context, organization_id } = command;
    const range = rangeOf(command, this.clock.now());
    this.blobs.requireStore();
    await this.reader.requireOwner(context, organization_id);
    const owner = { environment: context.environment, organization: organization_id };
    return this.inTurn(owner, async () => this.shown(owner.environment, await this.accept(command, owner, range)));
  }

  @Handles(GetAuditLogExport)
  async get({ context, id }: GetAuditLogExport): Promise<AuditLogExport> {
    const made = isIdOf(PREFIX, id) ? await this.repository.load(auditExportDecider, context.environment, id) : null;
    if (made === null) throw notFound('Audit log export', id);
    // Nobody is told of what has gone with its organization.
    await this.reader.requireOwner(context, made.organization_id).catch((error: unknown) => {
      throw error instanceof DomainError && error.kind === 'not-found' ? notFound('Audit log export', id) : error;
    });
    return this.shown(context.environment, made);
  }

  private async accept(command: CreateAuditLogExport, owner: TrailOwner, range: Range): Promise<StoredAuditExport> {
    const { context, format = 'csv' } = command;
    const id = `${PREFIX}_${derivedId(context.commandId, 0)}`;
    const known = await this.repository.load(auditExportDecider, owner.environment, id);
    if (known !== null) return known;
    const where = { index: 'waiting', values: [owner.organization] };
    if ((await this.rows.page(owner.environment, { where, order: 'asc', limit: MOST_WAITING })).rows.length === MOST_WAITING)
      throw new DomainError('limited', 'rate_limit_exceeded', `${MOST_WAITING} exports of this organization are not made yet: ask for more when they are.`, {
        retryAfter: 10,
      });
    const { size, note } = (await this.checkpoints.record(owner)) ?? (await this.checkpoints.ofNothing(owner));
    const asked_at = this.clock.now();
    const filter = filterOf(command);
    const made = {
      ...{ id, organization_id: owner.organization, format, ...range, asked_at, size, checkpoint: note },
      // Of no events, nobody needs to know which.
      filter: filter === null || size === 0 ? null : await this.sealed(owner, { id, asked_at, filter }),
    };
    return (await this.repository.transact(auditExportDecider, context, id, createExport(made))).state!;
  }

  private async sealed(owner: TrailOwner, { id, asked_at, filter }: { readonly id: string; readonly asked_at: number; readonly filter: ExportFilter }) {
    const key = await this.keys.find(owner);
    if (key === null) throw notFound('Organization', owner.organization);
    return key.at(asked_at).seal(filterBinding(owner.environment, id), canonicalJson(filter));
  }

  private async inTurn<Answer>({ environment, organization }: TrailOwner, work: () => Promise<Answer>): Promise<Answer> {
    const name = `${environment} ${organization}`;
    const done = (this.accepting.get(name) ?? Promise.resolve()).catch(() => {}).then(work);
    this.accepting.set(name, done);
    try {
      return await done;
    } finally {
      if (this.accepting.get(name) === done) this.accepting.delete(name);
    }
  }

  private async shown(environment: string, made: StoredAuditExport): Promise<AuditLogExport> {
    const { id, organization_id, format, failure, created_at, updated_at } = made;
    const gone = goneAt(made);
    // Who asks before the files are taken away is told what they would find.
    const state = made.state === 'ready' && gone! <= this.clock.now() ? 'expired' : made.state;
    const addressOf = async (part: 'file' | 'proof') => (state === 'ready' ? this.addresses.of(environment, made, part) : null);
    return {
      ...{ object: PREFIX, id, organization_id, format, state },
      url: await addressOf('file'),
      proof_url: await addressOf('proof'),
      error: failure === null ? null : failureOf(failure),
      expires_at: gone === null ? null : new Date(gone).toISOString(),
      ...{ created_at, updated_at },
    };
  }
}

function failureOf(code: ExportFailure): AuditLogExportError {
  return { code, message: MESSAGES[code] };
}

type Range = Pick<StoredAuditExport, 'range_start' | 'range_end'>;

/** @throws DomainError `invalid_audit_log_export_range_date` */
function rangeOf(asked: Pick<CreateAuditLogExport, 'range_start' | 'range_end'>, now: number): Range {
  const [range_start, range_end] = [Date.parse(asked.range_start), Date.parse(asked.range_end)];
  if (range_end < range_start) throw refusedRange('range_end must not lie before range_start.');
  if (range_end - range_start > LONGEST_RANGE) throw refusedRange('A range has at most 366 days.');
  if (range_start > now + CLOCKS_DIFFER) throw refusedRange('range_start must not lie in the future.');
  if (range_end < now - OLDEST) throw refusedRange('Nothing is kept of what happened so long ago.');
  return { range_start, range_end };
}

function refusedRange(message: string): DomainError {
  return new DomainError('invalid', 'invalid_audit_log_export_range_date', message);
}

/** Null: everything. An empty list asks for nothing in particular, as SDKs send it. */
function filterOf({ actions, actor_names = [], actors = [], actor_ids, targets }: CreateAuditLogExport): ExportFilter | null {
  const given = { actions, actor_names: [...actor_names, ...actors], actor_ids, target_types: targets };
  const filled = Object.entries(given).filter(([, values]) => values !== undefined && values.length > 0);
  return filled.length === 0 ? null : Object.fromEntries(filled);
}
