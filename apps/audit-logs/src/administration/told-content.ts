import type { AuditLogContent, AuditLogTarget, AuditLogValues } from '#libs/contracts/src/audit-logs/audit-log-event';
import type { RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import { COMMAND_LINE, type Origin } from '#libs/platform/src/request-context';
import { shortened } from '#libs/platform/src/shortened';
import { canonicalText } from '../domain/audit-content.ts';
import type { ToldChange } from './administered-stream.ts';
import { gathered, type Leaves } from './leaves.ts';

/** As of every event. */
const MOST_BYTES = 32 * 1024;
const MOST_NAMES = 50;
const LONGEST_NAME = 40;
const LONGEST_VALUE = 500;
const LONGEST_ID = 255;

/** The content of an audit event: a fact of administration, who did it, and from where. */
export function toldContent(record: RecordedEvent, change: ToldChange, origin: Origin | null): AuditLogContent {
  const { type, meta } = record;
  const contentWith = (longest: number): AuditLogContent => ({
    action: type,
    actor: actorOf(record, origin),
    context: { location: whole(origin?.address ?? '', LONGEST_VALUE), user_agent: whole(origin?.userAgent ?? '', LONGEST_VALUE) || null },
    metadata: { ...changeOf(change, longest), ...(meta.actor.id !== 'system' && { request_id: whole(meta.requestId, longest) }) },
    occurred_at: new Date(meta.at).toISOString(),
    targets: targetsOf(record, change),
    version: null,
  });
  for (let longest = LONGEST_VALUE; ; longest = Math.floor(longest / 2)) {
    const content = contentWith(longest);
    if (Buffer.byteLength(canonicalText(content)) <= MOST_BYTES) return content;
  }
}

function actorOf({ meta: { actor } }: RecordedEvent, origin: Origin | null): AuditLogTarget {
  const { id, name } = actor;
  if (id === COMMAND_LINE) return { id, type: id, name: origin?.operator ?? null, metadata: {} };
  // Ids begin with what they are of.
  const type = /^(?<kind>[a-z_]+)_[0-9A-Z]{26}$/.exec(id)?.groups?.['kind'] ?? (actor.source === 'system' ? 'system' : 'client');
  return { id, type, name: name && whole(name, LONGEST_VALUE), metadata: {} };
}

function targetsOf({ meta: { organization } }: RecordedEvent, { target: { type, id, name } }: ToldChange): readonly AuditLogTarget[] {
  const target = { type, id: whole(id, LONGEST_ID), name: name && whole(name, LONGEST_VALUE), metadata: {} };
  return organization === undefined || organization === id ? [target] : [target, { type: 'organization', id: organization, name: null, metadata: {} }];
}

/** Values under `before-` and `after-`; where there are too many, those of an object together, and then as many as there is room for. */
function changeOf({ before, after }: ToldChange, longest: number): AuditLogValues {
  // One name is for the request, and one for what is left out.
  const most = MOST_NAMES - 2;
  const sides = (of: (leaves: Leaves) => Leaves): readonly (readonly [string, string | number | boolean])[] =>
    Object.entries({ before, after }).flatMap(([side, leaves]) =>
      [...of(leaves)].flatMap(([path, value]) => (value === null ? [] : [[nameOf(side, path), valueOf(value, longest)] as const])),
    );
  let values = sides((leaves) => leaves);
  if (values.length > most) values = sides(gathered);
  const left = values.length - most;
  return { ...Object.fromEntries(values.slice(0, most)), ...(left > 0 && { left_out: left }) };
}

function nameOf(side: string, path: string): string {
  return `${side}-${path.replaceAll(/[^a-zA-Z0-9_-]/g, '_')}`.slice(0, LONGEST_NAME);
}

function valueOf(value: unknown, longest: number): string | number | boolean {
  if (typeof value === 'number' || typeof value === 'boolean') return value;
  return whole(typeof value === 'string' ? value : JSON.stringify(value), longest);
}

/** Cut where it is too long, and without halves of characters, which have no canonical form. */
function whole(text: string, longest: number): string {
  return shortened(Buffer.from(text).toString(), longest);
}
