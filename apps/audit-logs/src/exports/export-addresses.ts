import { createHmac, timingSafeEqual } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { Blobs } from '#libs/blobs/src/blobs';
import { KeyStore, type DataKey } from '#libs/event-sourcing/src/sealing/key-store';
import { Clock } from '#libs/platform/src/clock';
import { PublicAddressSettings } from '#libs/platform/src/config/settings';
import { isIdOf } from '#libs/platform/src/ids';
import type { StoredAuditExport } from '../domain/audit-export.decider.ts';
import { ExportFiles, namedFile, type ExportPart } from './export-files.ts';

/** How long an address serves. */
const SERVES_MS = 10 * 60_000;
/** What the paths of downloads begin with. */
export const DOWNLOADS = '/audit_log_exports';

/** What an address says, before anybody believed it. */
export interface GivenAddress {
  readonly environment: string;
  /** Of the export. */
  readonly id: string;
  /** Of the file. */
  readonly name: string;
  /** Milliseconds since the epoch, as text. */
  readonly until: string;
  readonly signature: string;
}

/** Addresses at which whoever is told them may download an export for a while. */
@Injectable()
export class ExportAddresses {
  private readonly base: string;

  constructor(
    private readonly blobs: Blobs,
    private readonly files: ExportFiles,
    private readonly keys: KeyStore,
    private readonly clock: Clock,
    { PUBLIC_URL }: PublicAddressSettings,
  ) {
    this.base = PUBLIC_URL.replace(/\/+$/, '') + DOWNLOADS;
  }

  /** Of the store itself where that can be reached from outside, else of ours. */
  async of(environment: string, made: StoredAuditExport, part: ExportPart): Promise<string> {
    const until = this.clock.now() + SERVES_MS;
    const { name, contentType } = namedFile(made, part);
    const attempt = made.files!.attempt;
    const stored = this.files.nameOf(environment, { id: made.id, attempt }, part);
    const address = await this.blobs.downloadAddress(stored, { until, fileName: name, contentType });
    if (address !== null) return address;
    const key = await this.keys.obtain(purposeOf(environment));
    const given = { environment, id: made.id, name, until: String(until) };
    const query = new URLSearchParams({ until: given.until, signature: signatureOf(key, given).toString('base64url') });
    return `${this.base}/${environment}/${made.id}/${name}?${query.toString()}`;
  }

  /** Whether it was given out, as it is, less than ten minutes ago. */
  async isGenuine(given: GivenAddress): Promise<boolean> {
    const now = this.clock.now();
    const isOpen = /^\d{1,15}$/.test(given.until) && Number(given.until) > now && Number(given.until) <= now + SERVES_MS;
    if (!isOpen || !isIdOf('environment', given.environment)) return false;
    const purpose = purposeOf(given.environment);
    const key = (await this.keys.findMany([purpose])).get(purpose);
    if (key === undefined || key === 'erased') return false;
    const [right, signature] = [signatureOf(key, given), Buffer.from(given.signature, 'base64url')];
    return signature.length === right.length && timingSafeEqual(signature, right) && given.signature === right.toString('base64url');
  }
}

function purposeOf(environment: string): `codes.${string}` {
  return `codes.${environment}`;
}

/** Parts with their lengths, so that no two addresses are one text. */
function signatureOf({ bytes }: DataKey, { environment, id, name, until }: Omit<GivenAddress, 'signature'>): Buffer {
  const hmac = createHmac('sha256', bytes);
  for (const part of ['download of an audit log export', environment, id, name, until]) hmac.update(`${Buffer.byteLength(part)}:`).update(part);
  return hmac.digest();
}
