import type { LoggerService } from '@nestjs/common';
import type { Log } from '#libs/platform/src/log';
import { sentenceOfError } from '#libs/platform/src/logged-error';

/** What Nest has to say goes where our lines go; that it mapped a route is not worth one. */
export class NestLog implements LoggerService {
  constructor(private readonly lines: Log) {}

  log(): void {}

  warn(message: unknown): void {
    this.lines.warn(String(message));
  }

  error(message: unknown, ...details: readonly unknown[]): void {
    const error = [message, ...details].find((value) => value instanceof Error);
    this.lines.error(message instanceof Error ? sentenceOfError(message) : String(message), {
      details: details.filter((detail) => typeof detail === 'string'),
      ...(error !== undefined && { error }),
    });
  }

  fatal(message: unknown, ...details: readonly unknown[]): void {
    this.error(message, ...details);
  }
}
