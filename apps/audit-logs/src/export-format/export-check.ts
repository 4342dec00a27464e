import { parseCheckpoint, verifyCheckpoint, type Checkpoint } from '../tree/checkpoint.ts';
import { commitmentOf, leafDataOf } from '../tree/leaf.ts';
import { leafHash } from '../tree/merkle-hash.ts';
import { MultiproofCheck, ProofTooShort } from '../tree/multiproof.ts';
import { isConsistent } from '../tree/proofs.ts';
import { contentOf, NotAnExport, type EventReader, type ExportedEvent } from './exported-event.ts';

/** What makes the checkpoint of a proof worth believing: at least one of the two. */
export interface Trust {
  /** Public keys of the environment (32 bytes each), not taken from the export. */
  readonly publicKeys?: readonly Buffer[];
  /** A checkpoint that was kept before, signed or believed. */
  readonly kept?: { readonly note: string; readonly consistency?: readonly Buffer[] };
}

/** What an export was found to be. */
export interface Verified {
  readonly checkpoint: Checkpoint;
  readonly events: number;
  /** Leaves of the first and the last event; null where there is none. */
  readonly leaves: { readonly first: number; readonly last: number } | null;
  /** Whether nothing that arrived between the first and the last is missing. Otherwise the events are genuine, and others may have been left out. */
  readonly isComplete: boolean;
}

/** The export is not what the checkpoint says, or the checkpoint is not to be believed. */
export class NotGenuine extends Error {}

/** The checkpoint of a proof, believed. @throws NotGenuine */
export function trustedCheckpoint(note: string, { publicKeys, kept }: Trust): Checkpoint {
  const checkpoint = parseCheckpoint(note);
  if (checkpoint === null) throw new NotGenuine('The proof has no checkpoint.');
  if (publicKeys !== undefined && verifyCheckpoint(note, publicKeys) === null) throw new NotGenuine('None of these keys signed the checkpoint of the proof.');
  if (kept === undefined) return checkpoint;
  const before = publicKeys === undefined ? parseCheckpoint(kept.note) : verifyCheckpoint(kept.note, publicKeys);
  if (before === null) throw new NotGenuine('What was kept is no checkpoint that one of these keys signed.');
  if (before.origin !== checkpoint.origin) throw new NotGenuine(`The checkpoint that was kept is of ${before.origin}, and the export of ${checkpoint.origin}.`);
  const [older, newer] = before.size <= checkpoint.size ? [before, checkpoint] : [checkpoint, before];
  // An empty trail is the beginning of each.
  if (older.size === 0) return checkpoint;
  if (older.size !== newer.size && kept.consistency === undefined)
    throw new NotGenuine(
      `The checkpoint that was kept is of ${before.size} events and that of the export of ${checkpoint.size}: a proof of consistency from ${older.size} to ${newer.size} has to say that the one continues the other.`,
    );
  if (!isConsistent(older, newer, kept.consistency ?? []))
    throw new NotGenuine('The checkpoint of the export contradicts the one that was kept: the trail was altered between them, or is another one.');
  return checkpoint;
}

/** Checks an export against its checkpoint as its pieces are read. */
export class ExportCheck {
  private readonly environment: string;
  private readonly organization: string;
  private readonly proof: MultiproofCheck;
  private first: number | null = null;
  private last = -1;
  private events = 0;

  /** `nextHash`: of the proof; null where it has no more. */
  constructor(
    private readonly checkpoint: Checkpoint,
    private readonly reader: EventReader,
    private readonly nextHash: () => Buffer | null,
  ) {
    const [, environment, organization] = /^gatehouse\/([^/]+)\/([^/]+)$/.exec(checkpoint.origin) ?? [];
    if (environment === undefined || organization === undefined) throw new NotGenuine(`${checkpoint.origin} is no trail.`);
    [this.environment, this.organization] = [environment, organization];
    this.proof = new MultiproofCheck(checkpoint.size, nextHash);
  }

  /** @throws NotGenuine */
  read(piece: string): void {
    this.addAll(() => this.reader.read(piece));
  }

  /** @throws NotGenuine */
  end(): Verified {
    this.addAll(() => this.reader.end());
    const { checkpoint, events, first, last } = this;
    const root = genuinely(() => this.proof.root());
    if (!root.equals(checkpoint.root))
      throw new NotGenuine('The events are not those of the checkpoint: at least one was altered, removed, added or put elsewhere.');
    if (this.nextHash() !== null) throw new NotGenuine('The proof goes on behind its end.');
    return { checkpoint, events, leaves: first === null ? null : { first, last }, isComplete: first !== null && last - first + 1 === events };
  }

  private addAll(events: () => Iterable<ExportedEvent>): void {
    genuinely(() => {
      for (const event of events()) this.add(event);
    });
  }

  private add(event: ExportedEvent): void {
    const { id, organization_id, received_at, leaf_index: leaf, salt } = event;
    if (organization_id !== this.organization) throw new NotGenuine(`${id} is of ${organization_id}, and the checkpoint of ${this.organization}.`);
    if (leaf <= this.last) throw new NotGenuine(`${id} (${leaf}) stands behind leaf ${this.last}: events were put in another order, or doubled.`);
    if (leaf >= this.checkpoint.size) throw new NotGenuine(`${id} arrived as number ${leaf}, and the checkpoint has ${this.checkpoint.size} events.`);
    const commitment = commitmentOf(Buffer.from(salt, 'hex'), contentOf(event));
    this.proof.add(leaf, leafHash(leafDataOf({ environment: this.environment, organization_id, id, received_at, commitment })));
    this.first ??= leaf;
    this.last = leaf;
    this.events += 1;
  }
}

function genuinely<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof ProofTooShort) throw new NotGenuine('The proof has too few hashes for these events: some are missing, or the proof was cut off.');
    // What no canonical JSON can say, or is deeper than anybody wrote.
    if (error instanceof NotAnExport || error instanceof RangeError) throw new NotGenuine(error.message);
    throw error;
  }
}
