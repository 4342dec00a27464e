import { StartRefused } from '#libs/platform/src/start-refused';
import type { ShortLived } from '#libs/read-models/src/short-lived';

/** Where every process may look that may be started meanwhile, the gateway too. */
const COLLECTION = 'restore';
const KEY = 'small state';
/** Until somebody takes it away. */
const FOR_EVER = Date.parse('9999-12-31T00:00:00.000Z');

/** Says, where the small state of a cluster is put back, that it is there in part: nothing begins on it but the same restore. */
export class RestoreMark {
  /** Short-lived entries of this collection are no part of the small state. */
  static readonly collection = COLLECTION;

  constructor(private readonly shortLived: ShortLived) {}

  /** Which backup is being put back; null: none is. */
  async backup(): Promise<string | null> {
    return (await this.shortLived.get(COLLECTION, KEY))?.value ?? null;
  }

  set(backup: string): Promise<void> {
    return this.shortLived.put(COLLECTION, KEY, backup, FOR_EVER);
  }

  async clear(): Promise<void> {
    await this.shortLived.take(COLLECTION, KEY);
  }

  /** @throws StartRefused while one is put back, and after a restore that was cut short */
  async requireNone(): Promise<void> {
    if ((await this.backup()) !== null)
      throw new StartRefused("The small state of this cluster was put back in part: wait for 'gatehouse restore', or run it again with the same file.");
  }
}
