import type { OpenApiDocument } from '#libs/contracts/src/openapi';
import { answerMatches } from './answers.ts';
import type { GeneratedRequest } from './requests.ts';

/** What came back, as it came. */
export interface Exchange {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- what a spec reads of an answer, it also asserts
  readonly body: any;
}

interface Sender {
  readonly url: string;
  readonly key: string;
}

/** Sends a request as it was generated: whatever its body is, it travels as JSON, unless it is said to be something else. */
export async function exchange({ url, key }: Sender, request: GeneratedRequest, headers: Readonly<Record<string, string>> = {}): Promise<Exchange> {
  const hasBody = request.body !== undefined;
  const response = await fetch(url + request.path, {
    method: request.method.toUpperCase(),
    headers: { Authorization: `Bearer ${key}`, ...(hasBody && { 'Content-Type': request.type ?? 'application/json' }), ...headers },
    body: hasBody ? (request.type === undefined ? JSON.stringify(request.body) : (request.body as string)) : null,
    redirect: 'manual',
  });
  const text = await response.text();
  return { status: response.status, headers: Object.fromEntries(response.headers), text, body: text === '' ? undefined : JSON.parse(text) };
}

/** @throws Error unless the answer is one that the document declares, and none that tells of a failure of ours */
export function holdToDocument(document: OpenApiDocument, request: GeneratedRequest, { status, headers, text }: Exchange): void {
  if (status >= 500) throw new Error(`${request.method.toUpperCase()} ${request.path} was answered ${status}: ${text}`);
  answerMatches(document, request.method, request.path, status, headers, text);
}
