import { setTimeout as pause } from 'node:timers/promises';
import { Injectable, type OnModuleInit } from '@nestjs/common';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { LeasedFollowers } from '#libs/event-sourcing/src/following/leased-followers';
import type { RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import { environmentOf, streamKeyOf } from '#libs/event-sourcing/src/log/naming';
import { Clock } from '#libs/platform/src/clock';
import { DomainError, isNotFound, isUnavailable } from '#libs/platform/src/domain-error';
import type { BackgroundComponent } from '#libs/platform/src/lifecycle';
import { Log } from '#libs/platform/src/log';
import { Metrics } from '#libs/platform/src/metrics';
import { Signal } from '#libs/platform/src/signal';
import { systemContext } from '#libs/platform/src/system-context';
import { Leases } from '#libs/read-models/src/leases';
import { ReadModels } from '#libs/read-models/src/read-models';
import { ShortLived } from '#libs/read-models/src/short-lived';
import {
  auditExportDecider,
  failExport,
  finishExport,
  type AuditExportEvent,
  type ExportFailure,
  type StoredAuditExport,
} from '../domain/audit-export.decider.ts';
import { DueWork } from '../due-work/due-work.ts';
import { TrailReader } from '../readers/trail-reader.ts';
import { BuildStopped, ExportBuilds, ExportFailed, NotStored, RetentionShortened } from './export-builds.ts';
import { ExportFiles } from './export-files.ts';
import { UnownedFiles } from './unowned-files.ts';

const WORK = 'audit.exports';
/** Of as many organizations: none has two made while another waits. */
const AT_ONCE = 4;
const LOOK_MS = 500;
const CLEAN_EVERY_MS = 3_600_000;
/** Pauses before an export is tried again that failed, or ended with its process. */
const PAUSES_MS = [1_000, 5_000, 15_000, 60_000];
/** While the log is away, nothing is tried that counts. */
const AWAY_MS = 5_000;
const LONGEST_MS = 86_400_000;
/** How often each was begun: outlives the process that one ends. */
const TRIES = 'audit_export_tries';
const LOOK_UP_MS = 30_000;
/** What the store did not let go is tried again so much later. What nobody remembers any more is found among what nobody owns. */
const LEFT_AGAIN_MS = 60_000;
const MOST_LEFT = 1_000;

/** An export that is to be made. */
interface Due {
  readonly stream: string;
  readonly environment: string;
  readonly id: string;
  readonly organization: string;
  /** Not before; milliseconds since the epoch. */
  at: number;
  /** It is not tried any more, which is to be recorded. */
  failure: ExportFailure | null;
}

/** An export that is over, and whose other attempts may have left something. */
interface Over {
  readonly id: string;
  /** Whose files stay; null: nobody's. */
  readonly attempt: string | null;
}

/** Has exports made, on one replica at a time. */
@Injectable()
export class ExportWork implements BackgroundComponent, OnModuleInit {
  readonly name = 'audit-exports';
  readonly stage = 'work';
  private readonly stopping = new AbortController();
  private readonly due: DueWork<Due>;
  /** By organization. */
  private readonly running = new Map<string, Promise<void>>();
  /** When an organization had its turn last: the one that had it longest ago is next. */
  private readonly turns = new Map<string, number>();
  private turn = 0;
  /** By export, what the store did not let go, and when it is tried again (milliseconds since the epoch). */
  private readonly left = new Map<string, { readonly environment: string; readonly over: Over; readonly at: number }>();
  private leaving: Promise<void> | null = null;
  private readonly asked = new Signal();
  private lease = new AbortController();
  private working: Promise<void> = Promise.resolve();
  private readonly made;

  constructor(
    private readonly followers: LeasedFollowers,
    private readonly leases: Leases,
    private readonly builds: ExportBuilds,
    private readonly files: ExportFiles,
    private readonly unowned: UnownedFiles,
    private readonly reader: TrailReader,
    private readonly repository: Repository,
    private readonly shortLived: ShortLived,
    private readonly clock: Clock,
    private readonly log: Log,
    metrics: Metrics,
    readModels: ReadModels,
  ) {
    this.due = new DueWork(readModels.table({ name: 'audit_exports_done', indexes: [], rebuildable: false, isMadeAnew: true }));
    this.made = metrics.counter({
      name: 'audit_exports_total',
      help: 'Exports of audit trails that were made (ready) or failed, with the reason.',
      labels: ['result'],
    });
    metrics.gauge({
      name: 'audit_exports_waiting',
      help: 'Exports of audit trails that this process has to make.',
      labels: [],
      collect: (gauge) => gauge.set({}, this.due.size),
    });
  }

  onModuleInit(): void {
    this.followers.add({
      name: WORK,
      table: this.due.table,
      types: ['audit_log_export.created', 'audit_log_export.ready', 'audit_log_export.failed'] satisfies readonly AuditExportEvent['type'][],
      isRepeatable: true,
      onBegin: () => {
        this.stopMaking();
        this.due.begin();
      },
      handle: async (records) => {
        for (const record of records) this.note(record);
        this.asked.notify();
        return Promise.resolve(false);
      },
    });
  }

  async start(): Promise<void> {
    this.working = this.work(this.stopping.signal);
    return Promise.resolve();
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    this.lease.abort();
    await this.working;
  }

  private note(record: RecordedEvent): void {
    const { type, stream, meta } = record;
    this.due.note(record, () => {
      if (type !== 'audit_log_export.created') return null;
      const environment = environmentOf(stream);
      return { stream, environment, id: streamKeyOf(stream), organization: meta.organization ?? environment, at: 0, failure: null };
    });
  }

  /** What is under way may be another's now. */
  private stopMaking(): void {
    this.lease.abort();
    this.lease = new AbortController();
  }

  private async work(signal: AbortSignal): Promise<void> {
    for (let cleanAt = 0; !signal.aborted;) {
      if (!this.leases.isHeld(WORK)) this.stopMaking();
      else {
        for (let next = this.nextDue(); next !== null && !signal.aborted; next = this.nextDue()) this.begin(next);
        if (performance.now() >= cleanAt) {
          cleanAt = performance.now() + CLEAN_EVERY_MS;
          void this.unowned.remove().catch((error: unknown) => this.log.debug('Files of exports could not be looked through.', { error }));
        }
      }
      this.leaving ??= this.leaveRest(signal).finally(() => (this.leaving = null));
      const over = new AbortController();
      await Promise.race([this.asked.next(AbortSignal.any([signal, over.signal])), pause(LOOK_MS), ...this.running.values()]);
      over.abort();
    }
    await Promise.all([...this.running.values(), this.leaving]);
  }

  /** Of organizations that have none made now: of the one that had its turn longest ago, the oldest. */
  private nextDue(): Due | null {
    if (this.running.size >= AT_ONCE) return null;
    const now = this.clock.now();
    let first: Due | null = null;
    for (const [, due] of this.due.items()) {
      if (this.running.has(placeOf(due)) || (due.at > now && due.at <= now + LONGEST_MS)) continue;
      if (first === null || this.turnOf(due) < this.turnOf(first)) first = due;
    }
    return first;
  }

  private turnOf(due: Due): number {
    return this.turns.get(placeOf(due)) ?? 0;
  }

  private begin(due: Due): void {
    const place = placeOf(due);
    this.turns.set(place, (this.turn += 1));
    const { signal } = this.lease;
    const done = this.make(due, signal).finally(() => {
      this.running.delete(place);
      // Whoever has nothing to wait for has no turn to remember.
      if (![...this.due.items()].some(([, each]) => placeOf(each) === place)) this.turns.delete(place);
    });
    this.running.set(place, done);
  }

  /** Never throws: what cannot be done now is tried again. */
  private async make(due: Due, signal: AbortSignal): Promise<void> {
    try {
      if (await this.isOver(due, signal)) this.due.done(due.stream, due);
    } catch (error) {
      if (error instanceof BuildStopped) return;
      due.at = this.clock.now() + AWAY_MS;
      if (isUnavailable(error)) this.log.warn('An export of an audit trail waits for what is away.', { export: due.id, error });
      else this.log.error('An export of an audit trail could not be made, and is tried again.', { export: due.id, error });
    }
  }

  /** Whether nothing is left to do for it. */
  private async isOver(due: Due, signal: AbortSignal): Promise<boolean> {
    const { environment, id } = due;
    const made = await this.repository.load(auditExportDecider, environment, id);
    if (made?.state !== 'pending') return true;
    if (due.failure !== null) return this.fail(due, made, due.failure);
    if (this.clock.now() - Date.parse(made.created_at) > LONGEST_MS) return this.fail(due, made, 'took_too_long');
    // Counted before it begins: what ends the process is not tried for ever.
    const tries = await this.countTry(due, 1);
    if (tries > PAUSES_MS.length + 1) return this.fail(due, made, 'internal_error');
    try {
      await this.build(due, made, signal);
      return true;
    } catch (error) {
      if (error instanceof ExportFailed) return this.fail(due, made, error.reason);
      if (error instanceof RetentionShortened) {
        await this.countTry(due, -1);
        return false;
      }
      const isOurs = !(error instanceof BuildStopped) && (error instanceof NotStored || !isUnavailable(error));
      if (!isOurs) {
        await this.countTry(due, -1).catch(() => {});
        throw error;
      }
      this.log.error('An attempt to make an export of an audit trail failed.', { export: id, tries, error: error instanceof NotStored ? error.cause : error });
      if (tries > PAUSES_MS.length) return this.fail(due, made, reasonOf(error));
      due.at = this.clock.now() + PAUSES_MS[tries - 1]!;
      return false;
    }
  }

  private async build({ environment, id }: Due, made: StoredAuditExport, signal: AbortSignal): Promise<void> {
    await this.reader.requireOwner({ environment, deadline: this.clock.now() + LOOK_UP_MS }, made.organization_id).catch((error: unknown) => {
      throw isNotFound(error) ? new ExportFailed('organization_deleted') : error;
    });
    const files = await this.builds.build(environment, made, signal);
    const { state } = await this.repository.transact(auditExportDecider, systemContext(environment, this.clock.now()), id, finishExport(files));
    if (state!.files?.attempt === files.attempt) {
      this.made.inc({ result: 'ready' });
      await this.leaveNothing(environment, { id, attempt: files.attempt });
    }
    // Another was faster, or its organization has gone.
    else await this.leaveNothing(environment, { id, attempt: state!.files?.attempt ?? null });
  }

  private async fail(due: Due, made: StoredAuditExport, reason: ExportFailure): Promise<true> {
    const { environment, id } = due;
    due.failure = reason;
    const { state } = await this.repository.transact(auditExportDecider, systemContext(environment, this.clock.now()), id, failExport(reason));
    this.made.inc({ result: reason });
    // Another may have made it meanwhile.
    await this.leaveNothing(environment, { id, attempt: state?.files?.attempt ?? null });
    this.log.error('An export of an audit trail failed.', { environment, organization: made.organization_id, export: id, reason });
    return true;
  }

  private async leaveNothing(environment: string, over: Over): Promise<void> {
    this.left.delete(over.id);
    try {
      await this.files.removeOthers(environment, over);
    } catch (error) {
      this.log.debug('Files of attempts to make an export stay for now.', { export: over.id, error });
      if (this.left.size < MOST_LEFT) this.left.set(over.id, { environment, over, at: this.clock.now() + LEFT_AGAIN_MS });
    }
  }

  private async leaveRest(signal: AbortSignal): Promise<void> {
    for (const { environment, over, at } of [...this.left.values()]) if (at <= this.clock.now() && !signal.aborted) await this.leaveNothing(environment, over);
  }

  private countTry({ environment, id }: Due, tries: number): Promise<number> {
    return this.shortLived.add(TRIES, `${environment} ${id}`, tries, this.clock.now() + 2 * LONGEST_MS);
  }
}

function placeOf({ environment, organization }: Due): string {
  return `${environment} ${organization}`;
}

function reasonOf(error: unknown): ExportFailure {
  if (!(error instanceof NotStored)) return 'internal_error';
  const { cause } = error;
  if (!(cause instanceof DomainError)) return 'internal_error';
  return cause.code === 'storage_full' ? 'storage_full' : 'storage_unavailable';
}
