import { exactBase64, parseCheckpoint } from '../tree/checkpoint.ts';
import { HASH_BYTES } from '../tree/merkle-hash.ts';
import { MultiproofPlan } from '../tree/multiproof.ts';
import { rootsOf, type Nodes, type Span } from '../tree/spans.ts';

const FIRST_LINE = 'gatehouse/audit-proof@v1';

/** Writes what stands beside an export and proves it: a checkpoint, and the hashes that lead from its events, in the order of their leaves, to the root of that. */
export class ProofWriter {
  private readonly plan: MultiproofPlan;

  /** `checkpoint`: the signed note. */
  constructor(
    private readonly checkpoint: string,
    private readonly nodes: Nodes,
  ) {
    this.plan = new MultiproofPlan(parseCheckpoint(checkpoint)!.size);
  }

  /** How the file begins. */
  head(): string {
    return `${FIRST_LINE}\n${this.checkpoint}\n`;
  }

  /**
   * What stands there on account of the next events. Those that stand next to each other in the trail need nothing, and cost no promise each: an export has millions of them.
   * @throws RangeError where a leaf is not behind the last one, or not in the tree
   */
  async events(leaves: readonly number[]): Promise<string> {
    let text = '';
    for (const leaf of leaves) {
      const spans = this.plan.before(leaf);
      if (spans.length > 0) text += await this.lines(spans);
    }
    return text;
  }

  /** How the file ends. */
  async rest(): Promise<string> {
    return this.lines(this.plan.rest());
  }

  private async lines(spans: readonly Span[]): Promise<string> {
    return (await rootsOf(spans, this.nodes)).map((hash) => `${hash.toString('base64')}\n`).join('');
  }
}

/** A file of proof, as far as it is read at once. */
export interface ProofFile {
  /** The signed note: whether to believe it is for the caller to say. */
  readonly checkpoint: string;
  /** Where the hashes begin. */
  readonly end: number;
}

/** What the file begins with; null for what is no file of proof. `text`: all, or enough of its beginning. */
export function readProofHead(text: string): ProofFile | null {
  if (!text.startsWith(`${FIRST_LINE}\n`)) return null;
  const from = FIRST_LINE.length + 1;
  const signatures = text.indexOf('\n\n', from) + 2;
  const end = text.indexOf('\n\n', signatures) + 2;
  return signatures < 2 || end < 2 ? null : { checkpoint: text.slice(from, end - 1), end };
}

/** A hash as it stands in the file; null for anything else. */
export function proofHash(line: string): Buffer | null {
  const hash = exactBase64(line);
  return hash?.length === HASH_BYTES ? hash : null;
}
