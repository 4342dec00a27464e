import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

/** What a short value stands between when it is meant: within other digits or letters it is there by chance. */
const OUTSIDE = /[^\w.-]/;

/** Values that must not be seen outside of a few places, in every form in which they could be. */
export class Canaries {
  private readonly forms = new Map<string, readonly (readonly [form: string, bytes: Buffer])[]>();
  private readonly words = new Set<string>();

  /** `name` is how a finding calls it; the value is shown nowhere. */
  add(name: string, value: string): string {
    this.forms.set(name, formsOf(value));
    return value;
  }

  /** A value that is so short that it counts only where it stands alone. */
  addWord(name: string, value: string): string {
    this.forms.set(name, [['as it is', Buffer.from(value)]]);
    this.words.add(name);
    return value;
  }

  addBytes(name: string, bytes: Buffer): void {
    this.forms.set(name, [
      ['as it is', bytes],
      ['in hex', Buffer.from(bytes.toString('hex'))],
      ['in base64', Buffer.from(alignedBase64(bytes, 0, 'base64'))],
      ['in base64url', Buffer.from(alignedBase64(bytes, 0, 'base64url'))],
    ]);
  }

  get names(): readonly string[] {
    return [...this.forms.keys()];
  }

  /** What is found in some bytes: `first key, as base64`. */
  foundIn(bytes: Buffer | string): readonly string[] {
    const buffer = typeof bytes === 'string' ? Buffer.from(bytes) : bytes;
    return this.names.flatMap((name) =>
      this.forms
        .get(name)!
        .filter(([, form]) => (this.words.has(name) ? hasWord(buffer, form) : buffer.includes(form)))
        .map(([form]) => `${name}, ${form}`),
    );
  }

  /** What is found in the files of a directory, by their paths in it. */
  foundInDirectory(directory: string): Readonly<Record<string, readonly string[]>> {
    const found: Record<string, readonly string[]> = {};
    for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue;
      const path = join(entry.parentPath, entry.name);
      const names = this.foundIn(readFileSync(path));
      if (names.length > 0) found[path.slice(directory.length + 1)] = names;
    }
    return found;
  }
}

function hasWord(buffer: Buffer, word: Buffer): boolean {
  const isOutside = (place: number): boolean => place < 0 || place >= buffer.length || OUTSIDE.test(String.fromCharCode(buffer[place]!));
  for (let at = buffer.indexOf(word); at >= 0; at = buffer.indexOf(word, at + 1)) if (isOutside(at - 1) && isOutside(at + word.length)) return true;
  return false;
}

/** Base64 of a value differs by what stands before it: each of the three ways is looked for. */
function formsOf(value: string): readonly (readonly [string, Buffer])[] {
  const bytes = Buffer.from(value);
  const forms = new Map<string, string | Buffer>([
    ['as it is', value],
    ['in UTF-16', Buffer.from(value, 'utf16le')],
    ['in hex', bytes.toString('hex')],
    ['in upper-case hex', bytes.toString('hex').toUpperCase()],
    ['percent-encoded', encodeURIComponent(value)],
    ['escaped in JSON', JSON.stringify(value).slice(1, -1)],
    ['backwards', [...value].reverse().join('')],
  ]);
  for (const alignment of [0, 1, 2])
    for (const encoding of ['base64', 'base64url'] as const) forms.set(`in ${encoding} (${alignment})`, alignedBase64(bytes, alignment, encoding));
  const random = /^(?:sk|whsec)_(.{32,})$/.exec(value)?.[1];
  if (random !== undefined) {
    forms.set('without its prefix', random);
    forms.set('as the bytes that it encodes', Buffer.from(random, 'base64'));
  }
  const all = [...forms].map(([form, bytesOf]) => [form, Buffer.from(bytesOf as Buffer)] as const);
  // What reads the same in two forms is told once.
  return all.filter(([, form], index) => all.findIndex(([, other]) => other.equals(form)) === index);
}

/** The characters of the encoding that stand for these bytes alone, when `alignment` bytes precede them in a group of three. */
function alignedBase64(bytes: Buffer, alignment: number, encoding: 'base64' | 'base64url'): string {
  const encoded = Buffer.concat([Buffer.alloc(alignment), bytes])
    .toString(encoding)
    .replaceAll('=', '');
  const first = Math.ceil((alignment * 8) / 6);
  const last = Math.floor(((alignment + bytes.length) * 8) / 6);
  return encoded.slice(first, last);
}
