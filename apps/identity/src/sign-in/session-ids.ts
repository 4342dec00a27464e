import { Injectable } from '@nestjs/common';
import { Naming } from '#libs/event-sourcing/src/log/naming';
import { ShownSecrets } from '#libs/event-sourcing/src/sealing/shown-secrets';
import { Clock } from '#libs/platform/src/clock';
import { BASE_32 } from '#libs/platform/src/ids';
import type { RequestContext } from '#libs/platform/src/request-context';
import { ShortLived } from '#libs/read-models/src/short-lived';
import { ASKED_AGAIN_WITHIN_MS } from '../domain/lost-answer.decider.ts';

const COLLECTION = 'sign_in_sessions';
/** A client that heard no answer asks again for so long after its code was spent, and the code is looked at after this began. */
const KEPT_MS = 2 * ASKED_AGAIN_WITHIN_MS;
const TIME_CHARACTERS = 10;

/** Ids of sessions, which nobody guesses from other ids: 80 bits derive from a key of the environment. */
@Injectable()
export class SessionIds {
  constructor(
    private readonly secrets: ShownSecrets,
    private readonly store: ShortLived,
    private readonly naming: Naming,
    private readonly clock: Clock,
  ) {}

  /** The session that this command begins: when it is repeated, the same. */
  async ofCommand(context: RequestContext): Promise<string> {
    const bits = BigInt(`0x${(await this.secrets.of(context, 'session')).subarray(0, 10).toString('hex')}`);
    const random = Array.from({ length: 16 }, (_, place) => BASE_32[Number((bits >> BigInt(5 * place)) & 31n)]!).join('');
    return `session_${context.commandId.slice(0, TIME_CHARACTERS)}${random}`;
  }

  /** The session that begins with what a client shows, such as a code: when it shows the same again soon, also in another request, the same. */
  async ofShown(context: RequestContext, ...shown: readonly string[]): Promise<string> {
    const key = this.naming.keyOf('sign_in', context.environment, ...shown);
    const { entry } = await this.store.putIfAbsent(COLLECTION, key, await this.ofCommand(context), this.clock.now() + KEPT_MS);
    return entry.value;
  }
}
