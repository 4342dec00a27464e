/**
 * What many ask for at once, each of whom wants it as it is after they asked. One reading serves everybody who waits for it; whoever comes while it is under way
 * waits for the next.
 */
export class SharedReading<Read> {
  private current: Promise<Read> | null = null;
  private upcoming: Promise<Read> | null = null;

  constructor(private readonly read: () => Promise<Read>) {}

  /** As it stands after the call. */
  next(): Promise<Read> {
    if (this.upcoming !== null) return this.upcoming;
    if (this.current === null) return this.begin();
    const begin = (): Promise<Read> => {
      this.upcoming = null;
      return this.begin();
    };
    return (this.upcoming = this.current.then(begin, begin));
  }

  private begin(): Promise<Read> {
    const reading = this.read();
    this.current = reading;
    const done = (): void => {
      if (this.current === reading) this.current = null;
    };
    reading.then(done, done);
    return reading;
  }
}
