import { Injectable } from '@nestjs/common';
import { DirectoryRequest } from '#libs/contracts/src/directories/directory';
import { ListDirectoryRequests } from '#libs/contracts/src/directories/operations';
import { Handles } from '#libs/contracts/src/handles';
import type { List, Serialised } from '#libs/contracts/src/operation';
import { serialiserOf } from '#libs/contracts/src/serialiser';
import { Clock } from '#libs/platform/src/clock';
import { newUlid, timeOfId } from '#libs/platform/src/ids';
import type { BackgroundComponent } from '#libs/platform/src/lifecycle';
import { Log } from '#libs/platform/src/log';
import { pageOfIds } from '#libs/read-models/src/pages';
import { ShortLived } from '#libs/read-models/src/short-lived';
import { DirectoryReader } from '../readers/directory-reader.ts';

const COLLECTION = 'scim_requests';
const MOST = 100;
const KEPT_MS = 7 * 24 * 60 * 60 * 1_000;
const EVERY_MS = 1_000;
const TRIES = 5;
const serialise = serialiserOf(DirectoryRequest);

type Note = Omit<DirectoryRequest, 'object' | 'id' | 'directory_id' | 'created_at'>;

/** The last requests that came to each directory: noted within a second, by whichever process answered them. */
@Injectable()
export class ScimRequestLog implements BackgroundComponent {
  readonly name = 'log of SCIM requests';
  readonly stage = 'work';
  private readonly noted = new Map<string, DirectoryRequest[]>();
  private timer: NodeJS.Timeout | undefined;
  private storing: Promise<void> = Promise.resolve();

  constructor(
    private readonly directories: DirectoryReader,
    private readonly shortLived: ShortLived,
    private readonly clock: Clock,
    private readonly log: Log,
  ) {}

  note(environment: string, directory_id: string, note: Note): void {
    const now = this.clock.now();
    const request: DirectoryRequest = {
      object: 'directory_request',
      id: `directory_request_${newUlid(now)}`,
      directory_id,
      ...note,
      created_at: new Date(now).toISOString(),
    };
    const key = keyOf(environment, directory_id);
    const noted = this.noted.get(key);
    if (noted === undefined) this.noted.set(key, [request]);
    else if (noted.push(request) === 2 * MOST) noted.splice(0, MOST);
  }

  @Handles(ListDirectoryRequests)
  async list(query: ListDirectoryRequests): Promise<Serialised<List<DirectoryRequest>>> {
    const { context, id } = query;
    await this.directories.require(context, id);
    await this.store();
    const entry = await this.shortLived.get(COLLECTION, keyOf(context.environment, id));
    const since = this.clock.now() - KEPT_MS;
    const requests = new Map(requestsIn(entry?.value).flatMap((request) => (timeOfId(request.id) >= since ? [[request.id, request] as const] : [])));
    return pageOfIds(query, {
      idPrefix: 'directory_request',
      ids: [...requests.keys()].sort(),
      isKnown: (cursor) => requests.has(cursor),
      textsOf: (ids) => ids.map((each) => serialise(requests.get(each)!)),
    });
  }

  async start(): Promise<void> {
    this.timer = setInterval(() => void this.store(), EVERY_MS).unref();
  }

  async stop(): Promise<void> {
    clearInterval(this.timer);
    await this.store();
  }

  /** What was noted up to now. Where the store is away it is tried again, and what does not fit any more is lost: nothing else hangs on it. */
  private store(): Promise<void> {
    this.storing = this.storing.then(async () => {
      for (const [key, requests] of [...this.noted]) {
        this.noted.delete(key);
        try {
          await this.add(key, requests);
        } catch (error) {
          this.noted.set(key, [...requests, ...(this.noted.get(key) ?? [])].slice(-MOST));
          this.log.warn('Requests that came by SCIM could not be noted yet.', { error });
          return;
        }
      }
    });
    return this.storing;
  }

  private async add(key: string, requests: readonly DirectoryRequest[]): Promise<void> {
    const expiresAt = this.clock.now() + KEPT_MS;
    for (let tries = 0; tries < TRIES; tries++) {
      const entry = await this.shortLived.get(COLLECTION, key);
      // Where many came, nothing of what is stored stays.
      const known = requests.length >= MOST ? [] : requestsIn(entry?.value);
      const all = JSON.stringify([...known, ...requests].slice(-MOST));
      const isStored =
        entry === null
          ? (await this.shortLived.putIfAbsent(COLLECTION, key, all, expiresAt)).stored
          : await this.shortLived.compareAndSet(COLLECTION, key, entry.version, all, expiresAt);
      if (isStored) return;
    }
  }
}

function keyOf(environment: string, directoryId: string): string {
  return `${environment} ${directoryId}`;
}

function requestsIn(text: string | undefined): readonly DirectoryRequest[] {
  return text === undefined ? [] : (JSON.parse(text) as readonly DirectoryRequest[]);
}
