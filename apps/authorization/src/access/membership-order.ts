import { grown, type IdTable } from './id-table.ts';

/** Memberships in the order of their ids. They mostly come in that order already: then nothing is kept. */
export class MembershipOrder {
  /** Numbers by place; null while each stands at its own number. */
  private numbers: Int32Array | null = null;

  constructor(private readonly ids: IdTable) {}

  get bytes(): number {
    return this.numbers?.byteLength ?? 0;
  }

  get size(): number {
    return this.ids.size;
  }

  at(place: number): number {
    return this.numbers === null ? place : this.numbers[place]!;
  }

  /** The newest of the table takes its place. */
  add(): void {
    const newest = this.size - 1;
    if (this.numbers === null) {
      if (newest === 0 || this.ids.compare(newest - 1, newest) < 0) return;
      this.numbers = Int32Array.from({ length: newest }, (_, number) => number);
    }
    const place = this.find(newest, newest);
    this.numbers = grown(this.numbers, this.size);
    this.numbers.copyWithin(place + 1, place, newest);
    this.numbers[place] = newest;
  }

  /** How many ids are smaller than this one, which need not be of a membership that is here. */
  placeOf(id: string): number {
    const known = this.ids.numberOf(id);
    if (known !== -1) return this.find(known, this.size);
    let [low, high] = [0, this.size];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.ids.idOf(this.at(middle)) < id) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  private find(number: number, size: number): number {
    let [low, high] = [0, size];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.ids.compare(this.at(middle), number) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
