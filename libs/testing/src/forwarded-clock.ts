import { SystemClock } from '#libs/platform/src/clock';

/** Goes as all clocks do, and can be set forward. */
export class ForwardedClock extends SystemClock {
  private ahead = 0;

  override now(): number {
    return super.now() + this.ahead;
  }

  forward(milliseconds: number): void {
    this.ahead += milliseconds;
  }
}
