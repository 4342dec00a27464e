import { Log, type LogFields } from '#libs/platform/src/log';

/** Keeps lines for the specs to read. */
export class KeptLog extends Log {
  readonly lines: { readonly level: string; readonly sentence: string; readonly fields: LogFields }[] = [];
  private readonly at =
    (level: string) =>
    (sentence: string, fields: LogFields = {}): void =>
      void this.lines.push({ level, sentence, fields });
  override readonly debug = this.at('debug');
  override readonly info = this.at('info');
  override readonly warn = this.at('warn');
  override readonly error = this.at('error');
}
