import { createCipheriv, createDecipheriv, type KeyObject } from 'node:crypto';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { RandomStock } from '#libs/platform/src/random-stock';
import { Deflater, Inflater } from './deflate.ts';

const IV_BYTES = 12;
const TAG_BYTES = 16;
/** First byte, where the content lies as it is. */
const PLAIN = 0;
/** Holds a dictionary and what follows it; small, since setting a larger window up takes longer than compressing an event. */
const WINDOW = { windowBits: 12, memLevel: 4 } as const;
/** What an event comes to, most of the time: zlib would take 16 KiB for each. */
const CHUNKS = { sealed: 512, opened: 1_024 } as const;
/** No event is longer, its numbers written out. */
const MAX_BYTES = 1024 * 1024;

/**
 * What most events share, the likeliest last: half of what an event takes is saved by it. Each is used for ever under its number (the first byte of what is stored); a better one gets the
 * next number, and is written once every process reads it.
 */
const DICTIONARIES: readonly Buffer[] = [
  Buffer.from(
    '"previous_value":"","new_value":"","reason":"","source":"api","source":"dashboard","status":"active","inactive","success","failure","email":"@example.com","request_id":"","session_id":"session_01",' +
      '"ip_address":"","plan":"enterprise","department":"","title":"","owner":"","role":"member","role":"admin",true,false,null,' +
      'Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0' +
      'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0' +
      'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36' +
      '{"action":"user.signed_in","action":"user.signed_out","action":"user.created","action":"user.invited","action":"member.removed","action":"settings.updated","action":"api_key.created",' +
      '"action":"document.viewed","action":"document.downloaded","action":"document.created","action":"document.updated","action":"document.deleted","action":"document.shared",' +
      '"actor":{"id":"user_01","metadata":{},"name":null,"type":"system"},"actor":{"id":"user_01","metadata":{"role":"owner"},"name":"","type":"user"},' +
      '"context":{"location":"2001:db8:","user_agent":null},"context":{"location":"192.0.2.","user_agent":"Mozilla/5.0 ("},"metadata":{},"occurred_at":"2026-01-01T00:00:00.000Z","targets":[],"version":null}' +
      '"targets":[{"id":"document_01","metadata":{},"name":null,"type":"document"},{"id":"team_01","metadata":{},"name":"","type":"team"},{"id":"user_01","metadata":{},"name":"","type":"user"}],"version":1}',
  ),
];
const WRITTEN = DICTIONARIES.length;
/** For what most events come to; what is longer is left to zlib. */
const deflater = new Deflater(DICTIONARIES[WRITTEN - 1]!);

/** By dictionary. Room is for what a deflater writes. */
const inflaters = DICTIONARIES.map((dictionary) => new Inflater(dictionary, deflater.longest));

const ivs = new RandomStock(IV_BYTES);

/** Compressed and sealed (AES-256-GCM). `binding` says which event it is of: moved elsewhere, it does not open. */
export function sealContent(key: KeyObject, binding: string, content: string): string {
  const compressed = deflater.deflate(content) ?? deflatedByZlib(content);
  const isSmaller = compressed.length < Buffer.byteLength(content);
  const inner = isSmaller ? compressed : Buffer.from(content);
  const number = isSmaller ? WRITTEN : PLAIN;
  const iv = ivs.look();
  const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(Buffer.from(`${number} ${binding}`));
  const sealed = Buffer.allocUnsafe(1 + IV_BYTES + inner.length + TAG_BYTES);
  sealed[0] = number;
  sealed.set(iv, 1);
  sealed.set(cipher.update(inner), 1 + IV_BYTES);
  // GCM has nothing left to say here.
  cipher.final();
  sealed.set(cipher.getAuthTag(), sealed.length - TAG_BYTES);
  return sealed.toString('base64url');
}

function deflatedByZlib(content: string): Buffer {
  return deflateRawSync(Buffer.from(content), { dictionary: DICTIONARIES[WRITTEN - 1], chunkSize: CHUNKS.sealed, ...WINDOW });
}

/** @throws Error when it was altered, moved, sealed with another key, or compressed in a way that only a later release knows */
export function openContent(key: KeyObject, binding: string, sealed: string): string {
  const bytes = Buffer.from(sealed, 'base64url');
  const number = bytes[0]!;
  const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(1, 1 + IV_BYTES)).setAAD(Buffer.from(`${number} ${binding}`));
  decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
  const opened = Buffer.concat([decipher.update(bytes.subarray(1 + IV_BYTES, -TAG_BYTES)), decipher.final()]);
  if (number === PLAIN) return opened.toString();
  const dictionary = DICTIONARIES[number - 1];
  if (dictionary === undefined) throw new Error(`The content of an audit event is compressed with the dictionary ${number}, which this release does not know.`);
  return (
    inflaters[number - 1]!.inflate(opened) ?? inflateRawSync(opened, { dictionary, chunkSize: CHUNKS.opened, maxOutputLength: MAX_BYTES, ...WINDOW }).toString()
  );
}
