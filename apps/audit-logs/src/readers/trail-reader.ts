import { Injectable } from '@nestjs/common';
import { streamName } from '#libs/event-sourcing/src/log/naming';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { isIdOf } from '#libs/platform/src/ids';
import { notFound } from '#libs/platform/src/domain-error';
import { contentOf, ReadModels, type Seeker, type StoredRow, type Table } from '#libs/read-models/src/read-models';
import { monthOf } from '../domain/audit-month.decider.ts';
import { AUDIT_TRAIL } from '../domain/audit-trail.decider.ts';
import type { MonthKey } from '../sealing/month-key.ts';
import { TrailKeys, type TrailKey, type TrailOwner } from '../sealing/trail-keys.ts';
import { auditTrailView, ENDED, eventIdOf, isEvent, type AuditEventRow, type AuditTrailRow } from '../views/audit-trail.view.ts';

/** Characters of content that are kept opened: pages next to each other share most of their events, and whoever looks at a list looks again. */
const OPENED = 4 * 1024 * 1024;

/** What was opened, of a row that said so. */
interface Opened {
  readonly organization: string;
  readonly sealed: string;
  readonly content: string;
}

/** Events of trails as they are read, and whose trails there are. */
@Injectable()
export class TrailReader {
  readonly rows: Table<AuditTrailRow>;
  /** By the key of one trail's month and the row; in memory no longer than the key, which is read again after a minute. */
  private opened = new WeakMap<MonthKey, Map<string, Opened>>();
  private openedLength = 0;

  constructor(
    private readonly keys: TrailKeys,
    readModels: ReadModels,
  ) {
    this.rows = readModels.table(tableOf(auditTrailView));
  }

  /** An organization that lives, or the environment itself. @throws DomainError `entity_not_found` */
  async requireOwner(seeker: Seeker, organization: string): Promise<void> {
    if (organization === seeker.environment) return;
    const row = isIdOf('org', organization) ? await this.rows.find(seeker, organization) : null;
    if (row === null || contentOf(row)[1] === ENDED) throw notFound('Organization', organization);
  }

  /** The events of rows of one trail, as answers have them; null where they are gone: `since` is what `Retention` says. @throws KeyMissing */
  async textsOf(owner: TrailOwner, rows: readonly StoredRow<AuditTrailRow>[], since: number): Promise<readonly (string | null)[]> {
    if (rows.length === 0) return [];
    const key = await this.keys.find(owner);
    return rows.map((stored) => {
      const row = contentOf(stored);
      // Terms of another trail may be the same, as one in 2^72 is.
      if (key === null || !isEvent(row) || row[0] !== owner.organization || row[3] < since) return null;
      const [organization, leaf, , receivedAt] = row;
      const id = eventIdOf(stored.id);
      const head = { object: 'audit_log_event', id, organization_id: organization, received_at: new Date(receivedAt).toISOString(), leaf_index: leaf };
      const content = this.openRow(owner, stored.id, row, key);
      // Nothing but what was validated has ever been sealed: it needs no second look.
      return content && `${JSON.stringify(head).slice(0, -1)},${content.slice(1)}`;
    });
  }

  /** The content of an event; null where the key of its month is gone. @throws Error where the row was altered, or sealed with another key */
  openRow({ environment }: TrailOwner, rowId: string, [organization, , , receivedAt, , , sealed]: AuditEventRow, key: TrailKey): string | null {
    const month = key.at(receivedAt);
    const known = this.opened.get(month)?.get(rowId);
    if (known?.sealed === sealed && known.organization === organization) return known.content;
    try {
      const content = month.open(`${streamName(AUDIT_TRAIL, environment, organization)} ${eventIdOf(rowId)}`, sealed);
      this.keep(month, rowId, { organization, sealed, content });
      return content;
    } catch (error) {
      if (monthOf(receivedAt) < key.firstMonth) return null;
      throw error;
    }
  }

  private keep(month: MonthKey, rowId: string, opened: Opened): void {
    const length = opened.sealed.length + opened.content.length;
    this.openedLength += length;
    if (this.openedLength > OPENED) {
      this.opened = new WeakMap();
      this.openedLength = length;
    }
    let ofMonth = this.opened.get(month);
    if (ofMonth === undefined) this.opened.set(month, (ofMonth = new Map<string, Opened>()));
    ofMonth.set(rowId, opened);
  }
}
