/** A blob as it is stored. */
export interface Blob {
  readonly name: string;
  readonly bytes: number;
  /** When the last of it was there; milliseconds since 1970. */
  readonly storedAt: number;
}

/** A part of a blob: both ends are bytes of it, counted from 0. */
export interface BlobRange {
  readonly first: number;
  /** Absent: up to the end. */
  readonly last?: number;
}

/** A blob that is being read: whoever asked for it begins to, and may end early (`break`), which gives back what is held for it. */
export interface BlobContent {
  readonly blob: Blob;
  /** @throws DomainError `service_unavailable` where it ends too early, or stops coming */
  readonly bytes: AsyncIterable<Uint8Array>;
}

export interface BlobDownload {
  /** Milliseconds since 1970, at most 7 days from now. */
  readonly until: number;
  readonly fileName: string;
  readonly contentType: string;
}

/**
 * Large content that no row or record may hold. A name is a path of two parts or more, `snapshots/<environment>/<id>`: ids and words of ours, never a text of a caller. No name is the folder of another.
 * All methods throw DomainError `service_unavailable` where the store does not answer as it should, and `blob_store_not_configured` where there is none.
 */
export abstract class Blobs {
  /**
   * Stores what `content` yields, in place of what has the name. It is under that name when all of it is durable: cut off, or thrown out of `content`, nothing of it is, and what was there stays.
   * What the end of a process cuts off is removed later, without anybody's doing.
   * @throws DomainError `storage_full`; what `content` throws
   */
  abstract put(name: string, content: AsyncIterable<Uint8Array>): Promise<Blob>;

  /** Null where there is none. What is read is one blob from its first byte to its last, whoever replaces or removes it meanwhile, or the reading throws. */
  abstract get(name: string, range?: BlobRange): Promise<BlobContent | null>;

  /** What is told of a blob without reading it; null where there is none. */
  abstract stat(name: string): Promise<Blob | null>;

  /** One that is not there is removed already. */
  abstract remove(name: string): Promise<void>;

  /** Ends what is being stored below a folder, also by a process that ended meanwhile: whoever is still at it is refused. For who knows that nothing of it will be wanted. */
  abstract endUnfinished(folder: string): Promise<void>;

  /** All below a folder, in no order. */
  abstract list(folder: string): AsyncIterable<Blob>;

  /** Where anybody who is told may download it until then. Null where the store can be reached by this process alone: then the owner of the blob serves it, at an address that the owner signs. */
  abstract downloadAddress(name: string, download: BlobDownload): Promise<string | null>;

  /** For who stores something later. @throws DomainError `blob_store_not_configured` */
  requireStore(): void {}

  abstract close(): Promise<void>;
}

const PART = '[A-Za-z0-9_-][A-Za-z0-9_.-]{0,199}';
const NAME = new RegExp(`^${PART}(/${PART})+$`);
const FOLDER = new RegExp(`^${PART}(/${PART})*$`);

/** A name of another form would be a fault of ours: it could lead out of the store. */
export function requireBlobName(name: string): string {
  if (!NAME.test(name)) throw new Error(`${JSON.stringify(name)} is no name of a blob.`);
  return name;
}

export function requireBlobFolder(folder: string): string {
  if (!FOLDER.test(folder)) throw new Error(`${JSON.stringify(folder)} is no folder of blobs.`);
  return folder;
}
