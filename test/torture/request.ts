/** A request that was sent and not answered: the process was killed, and nobody knows whether it happened. */
export interface Unanswered {
  readonly request: Request;
  readonly answered: (body: { readonly id?: string } | null) => void;
}

export interface Request {
  readonly method: 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly body?: object;
  readonly key?: string;
  readonly expected: readonly number[];
}

/** An acknowledged change, and how its public event is recognised among those about one object. */
export interface Change {
  readonly event: string;
  readonly about: string;
  readonly recognise: (data: EventData) => boolean;
}

export interface EventData {
  readonly id: string;
  readonly name?: string;
  readonly external_id?: string | null;
}
