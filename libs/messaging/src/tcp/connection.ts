import { ClientTCP } from '@nestjs/microservices';
import { FrameSocket, type Message } from './frame-socket.ts';
import type { ServiceSecurity } from './service-security.ts';

interface Listeners {
  message(message: Message): void;
  /** Once, also when it could not be made. */
  closed(error: Error | null): void;
}

const DONE = Promise.resolve();

/** One connection to a replica: Nest's client makes it and closes it. What travels is ours: ids are numbers, and nobody observes. */
export class Connection extends ClientTCP {
  private readonly listeners: Listeners;
  private frames: FrameSocket | null = null;
  private isClosed = false;
  private error: Error | null = null;

  constructor(host: string, port: number, { client }: ServiceSecurity, listeners: Listeners) {
    super({ host, port, socketClass: FrameSocket, ...(client !== null && { tlsOptions: client }) });
    this.listeners = listeners;
  }

  /** Resolves when messages can be sent. @throws Error when it is not there in `patience` milliseconds, or was refused */
  async open(patience: number): Promise<FrameSocket> {
    const timer = setTimeout(() => this.abort('it does not answer'), patience);
    try {
      await this.connect();
      return this.frames!;
    } finally {
      clearTimeout(timer);
    }
  }

  get socketOfFrames(): FrameSocket {
    return this.frames!;
  }

  override createSocket(): FrameSocket {
    this.frames = super.createSocket() as FrameSocket;
    return this.frames;
  }

  abort(reason: string): void {
    this.error ??= new Error(reason);
    this.frames?.netSocket.destroy(this.error);
  }

  override handleResponse(message: unknown): Promise<void> {
    this.listeners.message(message as Message);
    return DONE;
  }

  override handleError(error: Error | string): void {
    this.error ??= typeof error === 'string' ? new Error(error) : error;
  }

  override handleClose(): void {
    super.handleClose();
    if (this.isClosed) return;
    this.isClosed = true;
    this.listeners.closed(this.error);
  }

  /** A key that both hold is proven only by the end of the handshake. */
  protected override connect$(socket: unknown, errorEvent?: string): ReturnType<ClientTCP['connect$']> {
    return super.connect$(socket, errorEvent, this.tlsOptions === undefined ? 'connect' : 'secureConnect');
  }
}
