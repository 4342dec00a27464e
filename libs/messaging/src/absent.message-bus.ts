import { MessageBus } from './message-bus.ts';

/** In place of the bus, in a process that neither announces nor hears anything: it need not know where the bus is, nor a password for it. */
export class AbsentMessageBus extends MessageBus {
  async publish(): Promise<never> {
    throw new Error('This process has no bus.');
  }

  async subscribe(): Promise<never> {
    throw new Error('This process has no bus.');
  }

  async backlog(): Promise<Readonly<Record<string, number>>> {
    return {};
  }

  async handled(): Promise<never> {
    throw new Error('This process has no bus.');
  }

  setAside(): Readonly<Record<string, number>> {
    return {};
  }

  async close(): Promise<void> {}
}
