import { canonicalJson } from '#libs/platform/src/canonical-json';
import { exportedEvent, jsonOf, NotAnExport, type EventReader, type ExportedEvent } from './exported-event.ts';

export function ndjsonLine(event: ExportedEvent): string {
  return `${canonicalJson(event)}\n`;
}

export class NdjsonReader implements EventReader {
  private rest = '';
  private line = 0;

  *read(piece: string): Generator<ExportedEvent> {
    const lines = (this.rest + piece).split('\n');
    this.rest = lines.pop()!;
    for (const line of lines) yield this.event(line);
  }

  *end(): Generator<ExportedEvent> {
    if (this.rest !== '') yield this.event(this.rest);
  }

  private event(text: string): ExportedEvent {
    this.line += 1;
    const event = exportedEvent(jsonOf(text, this.line), this.line);
    // A name that stands there twice would be read once.
    if (canonicalJson(event) !== text) throw new NotAnExport(this.line, 'this is not written as it was.');
    return event;
  }
}
