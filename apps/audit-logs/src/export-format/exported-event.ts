/** What an event is about, or who did it. */
export interface ExportedParty {
  readonly id: string;
  readonly type: string;
  readonly name: string | null;
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** What the application told. */
export interface ExportedContent {
  readonly action: string;
  readonly occurred_at: string;
  readonly version: number | null;
  readonly actor: ExportedParty;
  readonly targets: readonly ExportedParty[];
  readonly context: { readonly location: string; readonly user_agent: string | null };
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** An event as it leaves with an export, and all that its leaf is made of. */
export interface ExportedEvent extends ExportedContent {
  readonly id: string;
  readonly organization_id: string;
  readonly received_at: string;
  readonly leaf_index: number;
  /** Hexadecimal. */
  readonly salt: string;
}

/** Nobody exported this: the file was changed, or is none of ours. */
export class NotAnExport extends Error {
  constructor(
    readonly line: number,
    reason: string,
  ) {
    super(`Line ${line}: ${reason}`);
  }
}

/** Reads a file of events piece by piece, as it arrives. */
export interface EventReader {
  /** The events that end in this piece of the file. @throws NotAnExport */
  read(piece: string): Iterable<ExportedEvent>;
  /** Those that are left when nothing follows. @throws NotAnExport */
  end(): Iterable<ExportedEvent>;
}

/** What the commitment is made of. */
export function contentOf({ action, occurred_at, version, actor, targets, context, metadata }: ExportedEvent): ExportedContent {
  return { action, occurred_at, version, actor, targets, context, metadata };
}

/** @throws NotAnExport */
export function jsonOf(text: string, line: number): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new NotAnExport(line, 'this is no JSON.');
  }
}

/** @throws NotAnExport for a value that is no event */
export function exportedEvent(value: unknown, line: number): ExportedEvent {
  if (!isEvent(value)) throw new NotAnExport(line, 'this is no event.');
  return value;
}

function isEvent(value: unknown): value is ExportedEvent {
  if (!isObject(value)) return false;
  const { id, organization_id, received_at, occurred_at, action, version, actor, targets, context, metadata, leaf_index, salt } = value;
  const areTexts = [id, organization_id, received_at, occurred_at, action].every((text) => typeof text === 'string');
  const isPlaced = Number.isSafeInteger(leaf_index) && (leaf_index as number) >= 0 && typeof salt === 'string' && /^(?:[0-9a-f]{2})*$/.test(salt);
  const isVersioned = version === null || Number.isSafeInteger(version);
  const isSomewhere = isObject(context) && typeof context['location'] === 'string' && isTextOrNull(context['user_agent']) && hasOnly(context, 2);
  return (
    areTexts &&
    isPlaced &&
    isVersioned &&
    isSomewhere &&
    isParty(actor) &&
    Array.isArray(targets) &&
    targets.every(isParty) &&
    isObject(metadata) &&
    hasOnly(value, 12)
  );
}

function isParty(value: unknown): value is ExportedParty {
  if (!isObject(value)) return false;
  const { id, type, name, metadata } = value;
  return typeof id === 'string' && typeof type === 'string' && isTextOrNull(name) && isObject(metadata) && hasOnly(value, 4);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isTextOrNull(value: unknown): boolean {
  return value === null || typeof value === 'string';
}

/** What nobody looks at could say anything. */
function hasOnly(value: object, count: number): boolean {
  return Object.keys(value).length === count;
}
