import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { decode, encode } from 'dns-packet';

/** A DNS server on the loopback that knows the TXT records it was told. */
export interface DnsServer {
  /** For the setting `DNS_SERVERS`. */
  readonly address: string;
  /** The names that were asked for, in order. */
  readonly asked: readonly string[];
  /** From now on the name has these TXT records; a record given as a list comes in pieces. */
  answers(name: string, ...records: readonly (string | readonly string[])[]): void;
  /** From now on nothing is said about this name and those below it. */
  isSilentAbout(name: string): void;
  close(): Promise<void>;
}

export async function startDnsServer(port = 0): Promise<DnsServer> {
  const records = new Map<string, readonly (string | readonly string[])[]>();
  const silent = new Set<string>();
  const asked: string[] = [];
  const socket = createSocket('udp4');
  socket.on('message', (message, peer) => {
    const { id, questions = [] } = decode(message);
    const name = questions[0]?.name.toLowerCase() ?? '';
    asked.push(name);
    if ([...silent].some((part) => name === part || name.endsWith(`.${part}`))) return;
    const found = records.get(name);
    const answers = (found ?? []).map((data) => ({ type: 'TXT', name, ttl: 0, data: typeof data === 'string' ? data : [...data] }) as const);
    // 3 is NXDOMAIN.
    socket.send(encode({ type: 'response', id, flags: found === undefined ? 3 : 0, questions, answers }), peer.port, peer.address);
  });
  socket.bind(port, '127.0.0.1');
  await once(socket, 'listening');
  return {
    address: `127.0.0.1:${socket.address().port}`,
    asked,
    answers: (name, ...texts) => void records.set(name, texts),
    isSilentAbout: (name) => void silent.add(name),
    close: async () => {
      socket.close();
      await once(socket, 'close');
    },
  };
}
