import type { Stamp, Stamps } from '#libs/read-models/src/stamps';
import { streamKeyOf } from '../log/naming.ts';
import type { Reaction } from './reaction.ts';

/** A stamp, and what ends the life of its owners. */
export interface KeptStamp {
  readonly stamp: Stamp;
  /** Facts in the stream of the owner, whose id is the last part of the stream's name. */
  readonly endsWith: readonly string[];
}

/** An owner that ends takes his stamp along: what another process learns of his last use afterwards brings nothing back. */
export function stampEnds({ stamp, endsWith }: KeptStamp, stamps: Stamps): Reaction {
  return {
    name: `stamps.${stamp.name}`,
    handles: endsWith,
    // Who ended before there was such a stamp has none.
    from: 'head',
    react: ({ stream, meta }) => stamps.end(stamp, meta.environment, [streamKeyOf(stream)]),
  };
}
