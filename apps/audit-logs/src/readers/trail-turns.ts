import { Injectable } from '@nestjs/common';
import { FairTurns } from '#libs/platform/src/fair-turns';
import type { RequestContext } from '#libs/platform/src/request-context';

/** In one turn of the event loop. A page of a hundred events, or a proof, takes a millisecond of the processor, an event a tenth of that; and a turn costs something itself. */
const [LOOKS_AT_ONCE, EVENTS_AT_ONCE] = [2, 12];

/** What is asked of one trail takes turns with itself, so that a flood of one organization's requests has those of others wait for a few of them, and not for all. */
@Injectable()
export class TrailTurns {
  private readonly looks = new FairTurns(LOOKS_AT_ONCE);
  private readonly events = new FairTurns(EVENTS_AT_ONCE);

  /** Of a page, or a proof. Null: at once. */
  look({ environment }: RequestContext, organization: string): Promise<void> | null {
    return this.looks.take(`${environment} ${organization}`);
  }

  /** Of an event that is to be recorded. Null: at once. */
  event({ environment }: RequestContext, organization: string): Promise<void> | null {
    return this.events.take(`${environment} ${organization}`);
  }
}
