import { closeSync, createReadStream, openSync, readSync } from 'node:fs';
import { CsvReader } from './csv.ts';
import { ExportCheck, NotGenuine, trustedCheckpoint, type Trust, type Verified } from './export-check.ts';
import { NdjsonReader } from './ndjson.ts';
import { proofHash, readProofHead } from './proof-file.ts';

const PIECE_BYTES = 64 * 1024;

/** Checks an export by the file of proof beside it, without a server and without keeping more of the two than pieces. @throws NotGenuine */
export async function verifyExport({ file, proof, trust }: { readonly file: string; readonly proof: string; readonly trust: Trust }): Promise<Verified> {
  const lines = new ProofLines(proof);
  try {
    const checkpoint = trustedCheckpoint(lines.checkpoint, trust);
    let check: ExportCheck | null = null;
    const decoder = new TextDecoder('utf-8', { fatal: true });
    for await (const piece of createReadStream(file, { highWaterMark: PIECE_BYTES }) as AsyncIterable<Buffer>) {
      const text = decoded(decoder, piece);
      if (text === '') continue;
      check ??= new ExportCheck(checkpoint, text.startsWith('{') ? new NdjsonReader() : new CsvReader(), () => lines.next());
      check.read(text);
    }
    decoded(decoder);
    // Without events, a file of NDJSON is empty.
    check ??= new ExportCheck(checkpoint, new NdjsonReader(), () => lines.next());
    return check.end();
  } finally {
    lines.close();
  }
}

function decoded(decoder: InstanceType<typeof TextDecoder>, piece?: Buffer): string {
  try {
    return decoder.decode(piece, { stream: piece !== undefined });
  } catch {
    throw new NotGenuine('The export is no UTF-8.');
  }
}

/** The hashes of a file of proof, one after the other. Read at once, since an event of the export asks for its hashes in the midst of it. */
class ProofLines {
  readonly checkpoint: string;
  private readonly file: number;
  private text = '';
  private at = 0;

  constructor(path: string) {
    this.file = openSync(path, 'r');
    this.fill();
    const head = readProofHead(this.text);
    if (head === null) {
      this.close();
      throw new NotGenuine(`${path} is no proof of an export.`);
    }
    this.checkpoint = head.checkpoint;
    this.at = head.end;
  }

  /** Null where it has no more. @throws NotGenuine */
  next(): Buffer | null {
    for (let end = this.text.indexOf('\n', this.at); ; end = this.text.indexOf('\n', this.at)) {
      if (end >= 0) {
        const hash = proofHash(this.text.slice(this.at, end));
        if (hash === null) throw new NotGenuine('The proof has a line that is no hash.');
        this.at = end + 1;
        return hash;
      }
      if (this.fill()) continue;
      if (this.at < this.text.length) throw new NotGenuine('The proof ends within a line.');
      return null;
    }
  }

  close(): void {
    closeSync(this.file);
  }

  /** Whether there was more. */
  private fill(): boolean {
    const piece = Buffer.alloc(PIECE_BYTES);
    const bytes = readSync(this.file, piece);
    // Hashes are ASCII; a checkpoint fits into the first piece.
    this.text = this.text.slice(this.at) + piece.toString('utf8', 0, bytes);
    this.at = 0;
    return bytes > 0;
  }
}
