import { EMPTY_ROOT, HASH_BYTES, nodeHash } from './merkle-hash.ts';
import { splitOf, type Span } from './spans.ts';

/** What a walk over the tree meets: a node that none of the leaves hangs under, one of the leaves, or that both sides of a node are behind it. */
type Step = { readonly kind: 'span'; readonly span: Span } | { readonly kind: 'leaf' } | { readonly kind: 'joined' };

const JOIN = null;
const LEAF: Step = { kind: 'leaf' };
const JOINED: Step = { kind: 'joined' };

/**
 * One proof for many leaves: goes over the tree from left to right and passes only through nodes that one of the leaves hangs under. The hashes of all others, in the order in
 * which they are met, are the proof. It keeps as many nodes as the tree is high, so a proof of millions can be written and checked as it streams by.
 */
class TreeWalk {
  private readonly ahead: (Span | typeof JOIN)[];

  constructor(size: number) {
    this.ahead = size === 0 ? [] : [{ from: 0, to: size }];
  }

  /** Up to and with a leaf that lies behind the last one; null: up to the end. */
  *walk(leaf: number | null): Generator<Step, void> {
    for (let next = this.ahead.pop(); next !== undefined; next = this.ahead.pop()) {
      if (next === JOIN) {
        yield JOINED;
      } else if (leaf === null || next.to <= leaf) {
        yield { kind: 'span', span: next };
      } else if (next.from > leaf) {
        throw new RangeError(`Leaf ${leaf} is behind.`);
      } else if (next.to - next.from === 1) {
        yield LEAF;
        return;
      } else {
        const split = splitOf(next);
        this.ahead.push(JOIN, { from: split, to: next.to }, { from: next.from, to: split });
      }
    }
    if (leaf !== null) throw new RangeError(`The tree ends before leaf ${leaf}.`);
  }
}

/** Tells, leaf by leaf in ascending order, whose hashes the proof needs. */
export class MultiproofPlan {
  private readonly steps: TreeWalk;

  constructor(size: number) {
    this.steps = new TreeWalk(size);
  }

  /** Before the next leaf. @throws RangeError where it is not behind the last one, or not in the tree */
  before(leaf: number): readonly Span[] {
    return spansOf(this.steps.walk(leaf));
  }

  /** Behind the last leaf. */
  rest(): readonly Span[] {
    return spansOf(this.steps.walk(null));
  }
}

/** Makes the root again out of leaves, in ascending order, and the hashes of a proof. */
export class MultiproofCheck {
  private readonly steps: TreeWalk;
  private readonly hashes: Buffer[] = [];

  /** `nextHash`: of the proof; null where it has no more. */
  constructor(
    size: number,
    private readonly nextHash: () => Buffer | null,
  ) {
    this.steps = new TreeWalk(size);
  }

  /** @throws RangeError where the leaf is not behind the last one or not in the tree; ProofTooShort */
  add(leaf: number, hash: Buffer): void {
    this.take(this.steps.walk(leaf), hash);
  }

  /** The root that follows from all of it: whether it is the right one is for the caller to say. @throws ProofTooShort */
  root(): Buffer {
    this.take(this.steps.walk(null), EMPTY_ROOT);
    return this.hashes.pop() ?? EMPTY_ROOT;
  }

  private take(steps: Iterable<Step>, leaf: Buffer): void {
    for (const step of steps) {
      switch (step.kind) {
        case 'leaf':
          this.hashes.push(leaf);
          break;
        case 'span':
          this.hashes.push(this.ofProof());
          break;
        case 'joined': {
          const right = this.hashes.pop()!;
          this.hashes.push(nodeHash(this.hashes.pop()!, right));
        }
      }
    }
  }

  private ofProof(): Buffer {
    const hash = this.nextHash();
    if (hash?.length !== HASH_BYTES) throw new ProofTooShort('The proof ends before the tree does.');
    return hash;
  }
}

export class ProofTooShort extends RangeError {}

function spansOf(steps: Iterable<Step>): readonly Span[] {
  const spans: Span[] = [];
  for (const step of steps) if (step.kind === 'span') spans.push(step.span);
  return spans;
}
