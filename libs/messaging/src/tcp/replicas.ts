import { isIP } from 'node:net';
import { hashOf } from '#libs/platform/src/text-hash';
import type { Attempt, Replica } from './replica.ts';

/** The addresses of a host, as they are now. */
export type Resolve = (host: string) => Promise<readonly string[]>;

interface Needs<A extends Attempt> {
  /** `host:port`, each host a name that may have many addresses. */
  readonly addresses: readonly string[];
  readonly resolve: Resolve;
  readonly connect: (host: string, port: number) => Replica<A>;
  readonly failed: (host: string, error: unknown) => void;
}

/** A replica takes a fourth more than its share before an organization's operations go to another one; a few at once are no load. */
const SHARE = 1.25;
const FEW = 4;

/** All replicas of one service, found by name. */
export class Replicas<A extends Attempt = Attempt> {
  private all: readonly Replica<A>[] = [];
  private readonly found = new Map<string, readonly string[]>();
  private hasLooked = false;
  private looking: Promise<void> | null = null;
  private turn = 0;

  constructor(private readonly needs: Needs<A>) {}

  [Symbol.iterator](): Iterator<Replica<A>> {
    return this.all[Symbol.iterator]();
  }

  /** Whether one may be there in a moment. */
  get isHopeful(): boolean {
    return !this.hasLooked || this.all.some(({ state }) => state === 'connecting');
  }

  /** Looks all names up again. A name that cannot be looked up keeps the addresses it had. */
  refresh(): Promise<void> {
    this.looking ??= this.look().finally(() => {
      this.looking = null;
    });
    return this.looking;
  }

  /**
   * The replica to ask, or null. Operations with one `key` go to the same replica, whichever process sends them, as long as it has not more than its share;
   * without a key, to the one that has least to do. One that is about to stop is asked only where there is no other.
   */
  choose(key: number | null, tried: readonly Replica<A>[] = []): Replica<A> | null {
    let able = this.all.filter((replica) => replica.state === 'ready' && replica.hasRoom && !tried.includes(replica));
    if (able.length === 0) able = this.all.filter((replica) => replica.state === 'leaving' && replica.hasRoom && !tried.includes(replica));
    if (able.length < 2) return able[0] ?? null;
    return (key === null ? null : byKey(able, key)) ?? this.leastLoaded(able);
  }

  /** One that has said nothing for a while, where there is no better one. */
  lastResort(tried: readonly Replica<A>[]): Replica<A> | null {
    return this.all.find((replica) => replica.mayAnswer && !tried.includes(replica)) ?? null;
  }

  close(): void {
    for (const replica of this.all) replica.close();
    this.all = [];
    this.hasLooked = true;
  }

  private leastLoaded(able: readonly Replica<A>[]): Replica<A> {
    this.turn = (this.turn + 1) % able.length;
    let best = able[this.turn]!;
    for (const replica of able) if (replica.load < best.load) best = replica;
    return best;
  }

  private async look(): Promise<void> {
    const wanted = new Map<string, { readonly host: string; readonly port: number }>();
    await Promise.all(
      this.needs.addresses.map(async (address) => {
        const { host: name, port } = parsed(address);
        for (const host of await this.addressesOf(name)) wanted.set(`${host}:${port}`, { host, port });
      }),
    );
    const kept = this.all.filter((replica) => replica.state !== 'closed' && !replica.isRetiring);
    for (const replica of kept) if (!wanted.has(replica.name)) replica.retire();
    const known = new Set(kept.map(({ name }) => name));
    const added = [...wanted].flatMap(([name, { host, port }]) => (known.has(name) ? [] : [this.needs.connect(host, port)]));
    this.all = [...this.all.filter((replica) => replica.state !== 'closed'), ...added];
    this.hasLooked = true;
  }

  private async addressesOf(name: string): Promise<readonly string[]> {
    if (isIP(name) !== 0) return [name];
    try {
      const addresses = await this.needs.resolve(name);
      this.found.set(name, addresses);
    } catch (error) {
      this.needs.failed(name, error);
    }
    return this.found.get(name) ?? [];
  }
}

/** Rendezvous hashing: each replica has a weight for the key, and the heaviest with a share left takes it. One replica more or less moves only what it takes or had. */
function byKey<A extends Attempt>(able: readonly Replica<A>[], key: number): Replica<A> | null {
  let load = 1;
  for (const replica of able) load += replica.load;
  const bound = Math.max(FEW, Math.ceil((SHARE * load) / able.length));
  let best: Replica<A> | null = null;
  let most = -1;
  for (const replica of able) {
    const weight = mixed(replica.seed ^ key);
    if (weight > most && replica.load < bound) {
      best = replica;
      most = weight;
    }
  }
  return best;
}

/** Every bit of the number changes about half of the bits of the result. */
function mixed(number: number): number {
  let mix = Math.imul(number ^ (number >>> 16), 0x85ebca6b);
  mix = Math.imul(mix ^ (mix >>> 13), 0xc2b2ae35);
  return (mix ^ (mix >>> 16)) >>> 0;
}

/** The number that decides which replica an id's operations go to. */
export function keyOf(id: string): number {
  return hashOf(id);
}

function parsed(address: string): { readonly host: string; readonly port: number } {
  const colon = address.lastIndexOf(':');
  const host = address.slice(0, colon).replace(/^\[(.*)\]$/, '$1');
  return { host, port: Number(address.slice(colon + 1)) };
}
