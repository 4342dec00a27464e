import { MessageBus } from './message-bus.ts';

/**
 * In place of the bus: in a process that announces nothing, which need not know where the bus is, nor a password for it; or where `nobody` could hear, since
 * all that there is runs in this process.
 */
export class AbsentMessageBus extends MessageBus {
  override readonly isForNobody: boolean;

  constructor(hearing?: 'nobody') {
    super();
    this.isForNobody = hearing === 'nobody';
  }

  async publish(): Promise<never> {
    throw new Error('This process has no bus.');
  }

  async close(): Promise<void> {}
}
