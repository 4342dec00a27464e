import type { OrganizationIndex } from './organization-index.ts';

const FIRST_SLOTS = 32;
/** More would make searches long, since many of those that are looked for are not there. */
const FULLEST = 0.8;
const GONE = -1;

/** In which organization in memory a membership is: 8 bytes a slot, and the organization itself says whether it is so. */
export class MembershipRoutes {
  private hashes = new Uint32Array(FIRST_SLOTS);
  /** The number of an organization, one more than it is; 0: free; -1: taken out. */
  private places = new Int32Array(FIRST_SLOTS);
  private used = 0;
  private readonly organizations: (OrganizationIndex | null)[] = [];
  private readonly numbers = new Map<OrganizationIndex, number>();

  get bytes(): number {
    return this.hashes.byteLength + this.places.byteLength;
  }

  add(hash: number, organization: OrganizationIndex): void {
    this.put(hash, this.numberOf(organization) + 1);
  }

  /** Those that may have a membership with this hash, the likeliest first. */
  find(hash: number, isIt: (organization: OrganizationIndex) => boolean): OrganizationIndex | null {
    const { hashes, places, organizations } = this;
    const mask = places.length - 1;
    for (let slot = hash & mask; places[slot] !== 0; slot = (slot + 1) & mask) {
      if (hashes[slot] !== hash || places[slot] === GONE) continue;
      const organization = organizations[places[slot]! - 1];
      if (organization != null && isIt(organization)) return organization;
    }
    return null;
  }

  /** What leads to it leads nowhere from now on, and goes when the table grows. */
  forget(organization: OrganizationIndex): void {
    const number = this.numbers.get(organization);
    if (number === undefined) return;
    this.numbers.delete(organization);
    this.organizations[number] = null;
    for (let slot = 0; slot < this.places.length; slot++) if (this.places[slot] === number + 1) this.places[slot] = GONE;
  }

  private numberOf(organization: OrganizationIndex): number {
    let number = this.numbers.get(organization);
    if (number === undefined) {
      const free = this.organizations.indexOf(null);
      number = free === -1 ? this.organizations.length : free;
      this.organizations[number] = organization;
      this.numbers.set(organization, number);
    }
    return number;
  }

  private put(hash: number, place: number): void {
    if ((this.used + 1) / this.places.length > FULLEST) this.rehash();
    const mask = this.places.length - 1;
    let slot = hash & mask;
    while (this.places[slot] !== 0) slot = (slot + 1) & mask;
    this.hashes[slot] = hash;
    this.places[slot] = place;
    this.used++;
  }

  private rehash(): void {
    const { hashes, places } = this;
    const live = places.reduce((sum, place) => sum + (place > 0 ? 1 : 0), 0);
    const length = (2 * live) / places.length > FULLEST ? places.length * 2 : places.length;
    this.hashes = new Uint32Array(length);
    this.places = new Int32Array(length);
    this.used = 0;
    for (let slot = 0; slot < places.length; slot++) if (places[slot]! > 0) this.put(hashes[slot]!, places[slot]!);
  }
}
