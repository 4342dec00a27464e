import { Injectable } from '@nestjs/common';
import type { Origin } from '#libs/platform/src/request-context';
import type { NewEvent, RecordedEvent } from '../log/event-store.ts';
import { environmentOf } from '../log/naming.ts';
import { KeyStore, type DataKey, type ErasablePurpose } from './key-store.ts';
import { openText, sealText } from './vault.ts';

/** Months that are looked at, back from the one before which origins end: as many as a server may have stood still. */
const MONTHS = 120;

/** The key of the origins in an environment's streams: one for each month of UTC, so that time ends them. */
export function originPurpose(stream: string, at: number): ErasablePurpose {
  return purposeIn(environmentOf(stream), new Date(at));
}

/** What is recorded of an origin. Moved to another record, it does not open. */
export function sealedOrigin(key: DataKey, stream: string, { id }: Pick<NewEvent, 'id'>, origin: Origin): string {
  return sealText(key, bindingOf(stream, id), JSON.stringify(origin));
}

/** From where facts of administration came. Nobody is told of it but the trail of the environment, so records carry it sealed to everybody. */
@Injectable()
export class Origins {
  constructor(private readonly keys: KeyStore) {}

  /** Null where the record says nothing of it, and where its month has ended. @throws KeyMissing */
  async of({ stream, id, meta: { origin, at } }: RecordedEvent): Promise<Origin | null> {
    if (typeof origin !== 'string') return null;
    const key = await this.keys.find(originPurpose(stream, at));
    return key === 'erased' ? null : (JSON.parse(openText(key, bindingOf(stream, id), origin)) as Origin);
  }

  /** Nothing is known any more of those that were recorded in months that were over by `time` (milliseconds since the epoch). Answers how many months that ended. */
  async endBefore(environment: string, time: number): Promise<number> {
    const last = new Date(time);
    const purposes = Array.from({ length: MONTHS }, (_, back) =>
      purposeIn(environment, new Date(Date.UTC(last.getUTCFullYear(), last.getUTCMonth() - 1 - back))),
    );
    const found = await this.keys.findMany(purposes);
    const alive = purposes.filter((purpose) => (found.get(purpose) ?? 'erased') !== 'erased');
    if (alive.length > 0) await this.keys.destroy(...alive);
    return alive.length;
  }
}

function purposeIn(environment: string, month: Date): ErasablePurpose {
  return `origins.${environment}-${month.toISOString().slice(0, 7)}`;
}

function bindingOf(stream: string, id: string): string {
  return `${stream} ${id} meta.origin`;
}
