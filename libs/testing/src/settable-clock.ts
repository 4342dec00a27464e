import { Clock } from '#libs/platform/src/clock';

/** Stands still until it is set forward. */
export class SettableClock extends Clock {
  constructor(private time = Date.parse('2026-01-15T12:00:30.000Z')) {
    super();
  }

  now(): number {
    return this.time;
  }

  forward(milliseconds: number): void {
    this.time += milliseconds;
  }
}
