import { connect } from 'node:net';

/** What a server wrote until it closed the connection, taken apart. */
export interface RawAnswer {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

/** Bytes to write, milliseconds to wait, or `end` of our half of the connection. */
export type Step = string | Buffer | number | null;

export const end = null;

/** Writes bytes as they are, step by step. Answers the first answer, or null when the server closes without one. */
export function rawExchange(url: string, ...steps: readonly Step[]): Promise<RawAnswer | null> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
    let answer = '';
    socket.setEncoding('utf8').on('data', (text: string) => (answer += text));
    // A server that has enough may reset the connection while we still write.
    socket.on('error', () => {});
    socket.on('end', () => socket.end());
    socket.on('close', () => resolve(answer === '' ? null : takenApart(answer)));
    void (async () => {
      for (const step of steps) {
        if (typeof step === 'number') await new Promise((done) => setTimeout(done, step));
        else if (step === end) socket.end();
        else if (socket.writable) socket.write(step);
      }
    })();
  });
}

function takenApart(answer: string): RawAnswer {
  const [head = '', ...rest] = answer.split('\r\n\r\n');
  const [statusLine = '', ...lines] = head.split('\r\n');
  const headers = Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]));
  return { status: Number(statusLine.split(' ')[1]), headers, text: rest.join('\r\n\r\n') };
}
