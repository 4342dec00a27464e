import { Injectable } from '@nestjs/common';
import { Command as CqrsCommand, CommandBus, QueryBus } from '@nestjs/cqrs';
import type { Operation } from '#libs/contracts/src/operation';
import { Clock } from '#libs/platform/src/clock';
import { unavailable } from '#libs/platform/src/domain-error';
import { Expiries } from '#libs/platform/src/expiries';
import { Positions } from '#libs/platform/src/positions';
import { OperationTransport } from './operation-transport.ts';

/** Calls the owner in this process. */
@Injectable()
export class DirectOperationTransport extends OperationTransport {
  private readonly expiries = new Expiries();

  constructor(
    private readonly commands: CommandBus,
    private readonly queries: QueryBus,
    private readonly positions: Positions,
    private readonly clock: Clock,
  ) {
    super();
  }

  call<Answer>(operation: Operation<Answer>): Promise<Answer> {
    const timeLeft = operation.context.deadline - this.clock.now();
    if (timeLeft <= 0) return Promise.reject(late());
    return new Promise((resolve, reject) => {
      const expiry = this.expiries.add(timeLeft, () => reject(late()));
      this.execute(operation).then(
        (value) => {
          this.expiries.remove(expiry);
          resolve(value);
        },
        (error: Error) => {
          this.expiries.remove(expiry);
          reject(error);
        },
      );
    });
  }

  /** The buses answer with a rejection where a handler throws. */
  private execute<Answer>(operation: Operation<Answer>): Promise<Answer> {
    if (operation instanceof CqrsCommand) return this.commands.execute(operation);
    const { readAfter, deadline } = operation.context;
    if (readAfter === undefined) return this.queries.execute(operation);
    return this.positions.reached(readAfter, deadline).then(() => this.queries.execute(operation));
  }
}

function late(): Error {
  return unavailable('The answer was not there in time.');
}
