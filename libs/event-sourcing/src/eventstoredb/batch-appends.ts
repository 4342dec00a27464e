import type { ClientDuplexStream } from '@grpc/grpc-js';
import type { BatchRequest, BatchResponse } from './wire.ts';

interface Waiting {
  readonly resolve: (response: BatchResponse) => void;
  readonly reject: (error: Error) => void;
}

interface Listener {
  heard(): void;
  /** The call carries nothing more: the next append needs another. */
  isOver(): void;
}

/** Appends on one call, which carries many at once and is answered in any order. When it breaks, the outcome of all that were not answered is unknown. */
export class BatchAppends {
  private readonly waiting = new Map<string, Waiting>();
  private failure: Error | null = null;

  constructor(
    private readonly call: ClientDuplexStream<BatchRequest, BatchResponse>,
    private readonly listener: Listener,
  ) {
    call.on('data', (response: BatchResponse) => {
      listener.heard();
      const id = response.getCorrelationId()!.getString();
      this.waiting.get(id)?.resolve(response);
      this.waiting.delete(id);
    });
    call.on('error', (error: Error) => this.end(error));
    for (const event of ['end', 'close']) call.on(event, () => this.end(new Error('The server has ended the call.')));
  }

  append(request: BatchRequest): Promise<BatchResponse> {
    if (this.failure !== null) return Promise.reject(this.failure);
    return new Promise((resolve, reject) => {
      this.waiting.set(request.getCorrelationId()!.getString(), { resolve, reject });
      this.call.write(request);
    });
  }

  private end(error: Error): void {
    if (this.failure !== null) return;
    this.failure = error;
    this.listener.isOver();
    for (const { reject } of this.waiting.values()) reject(error);
    this.waiting.clear();
  }
}
