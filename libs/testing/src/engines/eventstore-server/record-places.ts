/** Bytes from one record to the next, in the middle. */
const SPACING = 512;
/** Records begin up to so many bytes later than in the middle: who takes their distance for a constant is found out. */
const SPREAD = 397;

/**
 * Where the records of a log lie, in bytes, as EventStoreDB tells positions. The log below numbers its records from 1; here the sizes of records follow from
 * their numbers. `first` moves all records: positions of one log lie inside the records of another.
 */
export class RecordPlaces {
  constructor(private readonly first = 0) {}

  /** The first byte of a record; 0, where a log begins, for number 0. */
  beginOf(number: number): number {
    return number === 0 ? 0 : this.first + number * SPACING + (((number % 991) ** 2 * 31) % SPREAD);
  }

  /** The record that a byte lies in; 0 before the first one. */
  recordAt(byte: number): number {
    const number = Math.max(0, Math.floor((byte - this.first) / SPACING));
    return this.beginOf(number) <= byte ? number : number - 1;
  }
}
