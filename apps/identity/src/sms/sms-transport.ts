/** A text, ready to be sent. */
export interface Text {
  /** The same whenever it is sent again, so that whoever delivers it can tell. */
  readonly id: string;
  readonly environment: string;
  /** As E.164 writes it. */
  readonly to: string;
  /** ISO 3166. */
  readonly country: string;
  readonly text: string;
  /** As it stands in the text. */
  readonly code: string;
  readonly expires_at: string;
}

/**
 * What became of it: `refused` will never be taken, `again` may be later. `reason` names neither number nor text, nor what the receiver said of them; `wait`
 * (milliseconds): what the receiver asks for.
 */
export type Outcome = { readonly outcome: 'sent' } | { readonly outcome: 'refused' | 'again'; readonly reason: string; readonly wait?: number };

/** Hands texts over to whoever delivers them for an environment. */
export abstract class SmsTransport {
  /** `way`: as the settings of the environment have it, its secret sealed. */
  abstract send(text: Text, way: { readonly webhook_url: string | null; readonly webhook_secret: string | null }): Promise<Outcome>;
}
