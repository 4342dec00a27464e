import { pino, type DestinationStream, type Logger } from 'pino';
import { Log, type LogFields } from './log.ts';
import { loggedError } from './logged-error.ts';

/** Names under which a secret or a personal value could slip into the fields of a line. */
const REDACTED = ['authorization', 'Authorization', 'cookie', 'key', 'apiKey', 'secret', 'token', 'password', 'value', 'email', 'signature'];

const COLOURS: Readonly<Record<string, number>> = { debug: 90, info: 32, warn: 33, error: 31 };

/** JSON lines; on a terminal in development, the same as readable text. */
export class PinoLog extends Log {
  private readonly logger: Logger;

  constructor({
    level,
    readable,
    destination = process.stdout,
  }: {
    readonly level: string;
    readonly readable: boolean;
    readonly destination?: DestinationStream;
  }) {
    super();
    this.logger = pino(
      {
        level,
        base: null,
        messageKey: 'message',
        formatters: { level: (label) => ({ level: label }) },
        timestamp: () => `,"at":"${new Date().toISOString()}"`,
        redact: { paths: REDACTED.flatMap((name) => [name, `*.${name}`]), censor: '[redacted]' },
        serializers: { error: loggedError },
      },
      readable ? { write: (line) => destination.write(readableLine(line)) } : destination,
    );
  }

  debug(sentence: string, fields: LogFields = {}): void {
    this.logger.debug(fields, sentence);
  }

  info(sentence: string, fields: LogFields = {}): void {
    this.logger.info(fields, sentence);
  }

  warn(sentence: string, fields: LogFields = {}): void {
    this.logger.warn(fields, sentence);
  }

  error(sentence: string, fields: LogFields = {}): void {
    this.logger.error(fields, sentence);
  }
}

function readableLine(line: string): string {
  const { level, at, message, error, ...fields } = JSON.parse(line) as { level: string; at: string; message: string; error?: { stack?: string } };
  const rest = Object.entries(fields).map(([name, value]) => ` ${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`);
  const stack = error?.stack === undefined ? '' : `\n${error.stack}`;
  return `\x1b[90m${at.slice(11, 23)}\x1b[0m \x1b[${COLOURS[level] ?? 0}m${level.padEnd(5)}\x1b[0m ${message}\x1b[90m${rest.join('')}\x1b[0m${stack}\n`;
}
