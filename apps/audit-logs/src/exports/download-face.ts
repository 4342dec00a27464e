import { Readable } from 'node:stream';
import { Injectable } from '@nestjs/common';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Blobs, type BlobRange } from '#libs/blobs/src/blobs';
import { ERRORS, type DeclaredError } from '#libs/contracts/src/errors';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { BoundedMap } from '#libs/platform/src/bounded-map';
import { Clock } from '#libs/platform/src/clock';
import { DomainError, notFound, unavailable } from '#libs/platform/src/domain-error';
import type { HttpFace, WrittenAnswer } from '#libs/platform/src/http-face';
import { Log } from '#libs/platform/src/log';
import { Readiness } from '#libs/platform/src/readiness';
import { auditExportDecider, goneAt, type StoredAuditExport, type StoredFile } from '../domain/audit-export.decider.ts';
import { TrailReader } from '../readers/trail-reader.ts';
import { DOWNLOADS, ExportAddresses, type GivenAddress } from './export-addresses.ts';
import { ExportFiles, namedFile, wholeOnly, type ExportPart } from './export-files.ts';

const LOOK_UP_MS = 5_000;
/** What is said of a file, and of no refusal. */
const OF_FILES = ['Content-Disposition', 'Content-Length', 'Content-Range', 'Accept-Ranges', 'ETag'];
/** Files of which parts were sent: each was read as a whole before the first of them. */
const FOUND_WHOLE = 1_000;

/** Where the files of exports are downloaded that no store outside hands out: whoever has the address needs no API key. */
@Injectable()
export class DownloadFace implements HttpFace {
  readonly prefix = DOWNLOADS;
  /** By name, when the file was stored that was found to be what was given. */
  private readonly foundWhole = new BoundedMap<number>(FOUND_WHOLE);

  constructor(
    private readonly addresses: ExportAddresses,
    private readonly files: ExportFiles,
    private readonly reader: TrailReader,
    private readonly repository: Repository,
    private readonly blobs: Blobs,
    private readonly readiness: Readiness,
    private readonly clock: Clock,
    private readonly log: Log,
  ) {}

  async mount(server: FastifyInstance): Promise<void> {
    await server.register(
      async (scope) => {
        scope.setErrorHandler((error, request, reply) => this.refuse(error, request, reply));
        scope.setNotFoundHandler((request, reply) => this.refuse(new DomainError('not-found', 'route_not_found', 'No such path.'), request, reply));
        scope.route({
          method: ['GET', 'HEAD'],
          url: '/:environment/:id/:name',
          handler: (request, reply) => this.download(request, reply),
        });
      },
      { prefix: DOWNLOADS },
    );
  }

  refusalOf(error: unknown, requestId: string): WrittenAnswer {
    const headers = { 'Content-Type': 'application/json; charset=utf-8', 'Cache-Control': 'no-store' };
    if (error instanceof DomainError && Object.hasOwn(ERRORS, error.code)) {
      const { status }: DeclaredError = ERRORS[error.code as keyof typeof ERRORS];
      const { retryAfter } = error.details;
      const retry = retryAfter !== undefined && { 'Retry-After': String(retryAfter) };
      const range = error instanceof RangeNotSatisfiable && { 'Content-Range': `bytes */${error.bytes}` };
      return { status, headers: { ...headers, ...retry, ...range }, text: JSON.stringify({ message: error.message, code: error.code }) };
    }
    this.log.error('A download of an export failed.', { requestId, error });
    const message = `Something went wrong on our side. Please report the request id ${requestId}.`;
    return { status: 500, headers, text: JSON.stringify({ message, code: 'internal_error' }) };
  }

  private async download(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    if (!this.readiness.isServing) throw new DomainError('unavailable', 'service_unavailable', 'The server is starting.', { retryAfter: 1 });
    const { environment, id, name } = request.params as Pick<GivenAddress, 'environment' | 'id' | 'name'>;
    const { until, signature } = request.query as Record<string, unknown>;
    const given = { environment, id, name, until: textOf(until), signature: textOf(signature) };
    if (!(await this.addresses.isGenuine(given)))
      throw new DomainError('forbidden', 'forbidden', 'This address is not valid, or not any more: ask for the export again, which tells a new one.');
    const made = await this.find(environment, id);
    const part = (['file', 'proof'] as const).find((each) => namedFile(made, each).name === name);
    if (part === undefined) throw notFound('File', name);
    return this.send(reply, { environment, made, part }, request);
  }

  private async send(
    reply: FastifyReply,
    { environment, made, part }: { readonly environment: string; readonly made: StoredAuditExport; readonly part: ExportPart },
    { method, headers, id }: FastifyRequest,
  ): Promise<FastifyReply> {
    const { name, contentType } = namedFile(made, part);
    const { attempt, [part]: stored } = made.files!;
    // Parts are of a GET alone, and of the file that the client has the beginning of.
    const isPart = method === 'GET' && (headers['if-range'] === undefined || headers['if-range'] === `"${stored.hash}"`);
    const range = isPart ? rangeOf(headers.range, stored.bytes) : null;
    const { first, last } = range ?? { first: 0, last: stored.bytes - 1 };
    // What is said of a file is said of one that is there, as it was stored.
    const blobName = this.files.nameOf(environment, { id: made.id, attempt }, part);
    const isRead = method !== 'HEAD';
    if (range !== null) await this.requireWhole(environment, blobName, stored);
    const content = isRead ? await this.blobs.get(blobName, range ?? undefined) : null;
    const found = isRead ? (content?.blob ?? null) : await this.blobs.stat(blobName);
    if (found === null) throw notFound('File', name);
    const altered = (): DomainError => this.altered(blobName);
    // Parts say nothing of the whole, and so does what is read twice.
    const bytes = content === null ? null : streamOf(range === null ? wholeOnly(content.bytes, stored, altered) : content.bytes);
    if (found.bytes !== stored.bytes) {
      bytes?.destroy();
      throw altered();
    }
    reply.code(range === null ? 200 : 206).headers({
      'Content-Type': contentType,
      'Content-Disposition': `attachment; filename="${name}"`,
      'Content-Length': last - first + 1,
      'Accept-Ranges': 'bytes',
      ETag: `"${stored.hash}"`,
      'Cache-Control': 'private, no-store',
      'X-Content-Type-Options': 'nosniff',
      'X-Request-ID': id,
      ...(range !== null && { 'Content-Range': `bytes ${first}-${last}/${stored.bytes}` }),
    });
    return reply.send(bytes ?? undefined);
  }

  /** Before parts of a file are sent: once for each file as it is stored. @throws DomainError `service_unavailable` for one that is not what the store was given */
  private async requireWhole(environment: string, blobName: string, stored: StoredFile): Promise<void> {
    const found = await this.blobs.stat(blobName);
    if (found === null || this.foundWhole.get(environment, blobName) === found.storedAt) return;
    const content = await this.blobs.get(blobName);
    if (content === null) return;
    for await (const piece of wholeOnly(content.bytes, stored, () => this.altered(blobName))) void piece;
    this.foundWhole.set(environment, blobName, content.blob.storedAt);
  }

  private altered(blobName: string): DomainError {
    this.log.error('The store of files has another file of an export than it was given.', { blob: blobName });
    return unavailable('The store of files has another file than it was given.', 60);
  }

  /** @throws DomainError `entity_not_found` for an export that there is not, or whose files are gone */
  private async find(environment: string, id: string): Promise<StoredAuditExport> {
    const made = await this.repository.load(auditExportDecider, environment, id);
    const isThere = made?.state === 'ready' && goneAt(made)! > this.clock.now();
    if (!isThere) throw notFound('Audit log export', id);
    await this.reader.requireOwner({ environment, deadline: this.clock.now() + LOOK_UP_MS }, made.organization_id);
    return made;
  }

  private async refuse(error: unknown, request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const { status, headers, text } = this.refusalOf(error, request.id);
    // It may be the file itself that is refused, once its beginning was read.
    for (const name of OF_FILES) reply.removeHeader(name);
    await reply
      .code(status)
      .headers({ ...headers, 'X-Request-ID': request.id })
      .send(text);
  }
}

/** Gives back what is held for it also where nobody begins to read. */
function streamOf(bytes: AsyncIterable<Uint8Array>): Readable {
  const pieces = bytes[Symbol.asyncIterator]();
  let isBegun = false;
  return new Readable({
    read() {
      isBegun = true;
      void pieces.next().then(
        ({ done, value }) => this.push(done === true ? null : value),
        (error: unknown) => this.destroy(error as Error),
      );
    },
    destroy(error, done) {
      // One that was not begun ends without having held anything, as it sees it.
      const begun = isBegun ? Promise.resolve() : pieces.next();
      void begun
        .then(() => pieces.return?.())
        .catch(() => {})
        .then(() => done(error));
    },
  });
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** What is asked for lies behind the end of a file. */
class RangeNotSatisfiable extends DomainError {
  constructor(readonly bytes: number) {
    super('invalid', 'range_not_satisfiable', `The file has ${bytes} bytes, and nothing of what is asked for.`);
  }
}

/**
 * Of one part of a file; null for all of it, also where what is asked for is none or several.
 * @throws RangeNotSatisfiable
 */
function rangeOf(header: string | undefined, bytes: number): Required<BlobRange> | null {
  const [, from = '', to = ''] = /^bytes=(\d*)-(\d*)$/.exec(header?.trim() ?? '') ?? [];
  if (from === '' && to === '') return null;
  // The last bytes, as many as are there; or what lies between two of them.
  const [first, last] = from === '' ? [Math.max(0, bytes - Number(to)), bytes - 1] : [Number(from), to === '' ? bytes - 1 : Math.min(Number(to), bytes - 1)];
  if (from !== '' && to !== '' && Number(to) < Number(from)) return null;
  if (first >= bytes) throw new RangeNotSatisfiable(bytes);
  return { first, last };
}
