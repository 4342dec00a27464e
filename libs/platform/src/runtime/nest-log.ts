import type { LoggerService } from '@nestjs/common';
import type { Log } from '../log.ts';

/** What Nest has to say goes where our lines go; that it mapped a route is not worth one. */
export class NestLog implements LoggerService {
  constructor(private readonly lines: Log) {}

  log(): void {}

  warn(message: unknown): void {
    this.lines.warn(String(message));
  }

  error(message: unknown, ...details: readonly unknown[]): void {
    this.lines.error(String(message), { details });
  }

  fatal(message: unknown, ...details: readonly unknown[]): void {
    this.error(message, ...details);
  }
}
