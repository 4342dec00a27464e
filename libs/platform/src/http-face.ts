import type { FastifyInstance } from 'fastify';

/** What a service answers over HTTP beside operations: on the server of the API where that is in this process, on one of its own elsewhere. */
export interface HttpFace {
  /** What all of its paths begin with. */
  readonly prefix: string;
  /** Puts its routes on the server, before that listens. */
  mount(server: FastifyInstance): Promise<void>;
  /** What it says of a request below its prefix that was refused before any route was looked for. */
  refusalOf(error: unknown, requestId: string): WrittenAnswer;
}

/** An answer, down to its text. */
export interface WrittenAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

/** The face that a path is below. */
export function faceOf(faces: readonly HttpFace[], url: string): HttpFace | null {
  return faces.find(({ prefix }) => url === prefix || url.startsWith(`${prefix}/`) || url.startsWith(`${prefix}?`)) ?? null;
}
