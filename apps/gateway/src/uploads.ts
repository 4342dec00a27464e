import { createHash, type Hash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { Injectable } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import type { OperationUpload } from '#libs/contracts/src/operation';
import { Blobs } from '#libs/blobs/src/blobs';
import { Clock } from '#libs/platform/src/clock';
import { GatewaySettings } from '#libs/platform/src/config/settings';
import { within } from '#libs/platform/src/deadline';
import { badRequest, DomainError } from '#libs/platform/src/domain-error';
import { newUlid } from '#libs/platform/src/ids';
import { Log } from '#libs/platform/src/log';
import type { Upload } from '#libs/platform/src/request-context';

/** Each may take the memory of some parts on their way to the store. */
const MOST_AT_ONCE = 8;
/** Of one environment, so that nobody takes all of them. */
const MOST_OF_ONE = 2;

interface Limits extends OperationUpload {
  readonly maxBytes: number;
}

/** Takes bodies that are too long for memory: they go into the store of blobs as they come. */
@Injectable()
export class Uploads {
  private readonly running = new Map<string, number>();

  constructor(
    private readonly blobs: Blobs,
    private readonly settings: GatewaySettings,
    private readonly clock: Clock,
    private readonly log: Log,
  ) {}

  /** @throws DomainError `bad_request`, `payload_too_large`, `request_timeout`, `rate_limit_exceeded`, and as `Blobs.put` */
  async receive({ raw, headers }: FastifyRequest, environment: string, { folder, contentTypes, maxBytes }: Limits): Promise<Upload> {
    const contentType = contentTypes.find((each) => each === headers['content-type']?.split(';', 1)[0]!.trim().toLowerCase());
    if (contentType === undefined) throw badRequest(`The \`Content-Type\` of the body must be ${contentTypes.join(' or ')}.`);
    if (Number(headers['content-length'] ?? 0) > maxBytes) throw tooLong(maxBytes);
    const all = [...this.running.values()].reduce((sum, count) => sum + count, 0);
    const own = this.running.get(environment) ?? 0;
    if (all >= MOST_AT_ONCE || own >= MOST_OF_ONE) throw new DomainError('limited', 'rate_limit_exceeded', 'Too many uploads at once.', { retryAfter: 10 });
    this.running.set(environment, own + 1);
    try {
      const hash = createHash('sha256');
      const name = `${folder}/${environment}/${newUlid(this.clock.now())}`;
      const { bytes } = await this.blobs.put(name, this.contentOf(raw, maxBytes, hash));
      return { blob: name, bytes, hash: hash.digest('hex'), contentType };
    } finally {
      const left = this.running.get(environment)! - 1;
      if (left === 0) this.running.delete(environment);
      else this.running.set(environment, left);
    }
  }

  /** Nobody took it. What stays, its owner finds. */
  async discard({ blob }: Upload): Promise<void> {
    await this.blobs.remove(blob).catch((error: unknown) => this.log.warn('An upload that was refused stays for now.', { blob, error }));
  }

  private async *contentOf(request: IncomingMessage, maxBytes: number, hash: Hash): AsyncGenerator<Uint8Array> {
    releaseFromTimeouts(request);
    // Its end does not end the connection, on which a refusal is answered.
    const parts = request.iterator({ destroyOnReturn: false }) as AsyncIterator<Buffer>;
    for (let bytes = 0; ;) {
      // Only the client's own pace is counted, not the store's.
      const part = await within(parts.next().catch(cutOff), this.settings.REQUEST_TIMEOUT, tooSlow);
      if (part.done === true) return;
      bytes += part.value.byteLength;
      if (bytes > maxBytes) throw tooLong(maxBytes);
      hash.update(part.value);
      yield part.value;
    }
  }
}

/**
 * The server ends every request that has not arrived within `REQUEST_TIMEOUT`. An upload takes as long as it goes on, so its connection leaves the list that is looked through for that; it ends with the
 * answer. Node has no other way to let one request take longer: without this one, uploads take `REQUEST_TIMEOUT` at most.
 */
function releaseFromTimeouts({ socket }: IncomingMessage): void {
  (socket as { readonly parser?: { readonly remove?: () => void } | null }).parser?.remove?.();
}

function cutOff(): never {
  throw badRequest('The body was cut off.');
}

function tooSlow(): DomainError {
  return new DomainError('invalid', 'request_timeout', 'The request did not arrive completely in time.');
}

function tooLong(maxBytes: number): DomainError {
  return new DomainError('invalid', 'payload_too_large', `The body has more than ${maxBytes / 2 ** 20} MiB.`);
}
