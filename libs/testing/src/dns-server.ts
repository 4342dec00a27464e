import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { decode, encode, type Answer } from 'dns-packet';

const [SERVFAIL, NXDOMAIN] = [2, 3];

/** A DNS server on the loopback that knows the records it was told. */
export interface DnsServer {
  /** For the setting `DNS_SERVERS`. */
  readonly address: string;
  /** The names that were asked for, in order. */
  readonly asked: readonly string[];
  /** From now on the name has these TXT records; a record given as a list comes in pieces. */
  answers(name: string, ...records: readonly (string | readonly string[])[]): void;
  /** From now on the name has these records of mail exchanges; '.' is the root. */
  exchanges(name: string, ...exchanges: readonly string[]): void;
  /** From now on the name has this address of its own. */
  isAt(name: string, address: string): void;
  /** From now on the server says of this name that it cannot say. */
  failsAbout(name: string): void;
  /** From now on nothing is said about this name and those below it. */
  isSilentAbout(name: string): void;
  close(): Promise<void>;
}

export async function startDnsServer(port = 0): Promise<DnsServer> {
  /** By names, which are there even without a record of the type that is asked for. */
  const records = new Map<string, readonly Answer[]>();
  const silent = new Set<string>();
  const failing = new Set<string>();
  const asked: string[] = [];
  const socket = createSocket('udp4');
  socket.on('message', (message, peer) => {
    const { id, questions = [] } = decode(message);
    const name = questions[0]?.name.toLowerCase() ?? '';
    asked.push(name);
    if ([...silent].some((part) => name === part || name.endsWith(`.${part}`))) return;
    const found = records.get(name);
    const answers = (found ?? []).filter(({ type }) => type === questions[0]!.type);
    const flags = failing.has(name) ? SERVFAIL : found === undefined ? NXDOMAIN : 0;
    socket.send(encode({ type: 'response', id, flags, questions, answers }), peer.port, peer.address);
  });
  const knows = (name: string, ...found: readonly Omit<Extract<Answer, { data: unknown }>, 'name'>[]): void => {
    failing.delete(name);
    records.set(
      name,
      found.map((record) => ({ ...record, name, ttl: 0 }) as Answer),
    );
  };
  socket.bind(port, '127.0.0.1');
  await once(socket, 'listening');
  return {
    address: `127.0.0.1:${socket.address().port}`,
    asked,
    answers: (name, ...texts) => knows(name, ...texts.map((data) => ({ type: 'TXT', data: typeof data === 'string' ? data : [...data] }) as const)),
    exchanges: (name, ...exchanges) => knows(name, ...exchanges.map((exchange) => ({ type: 'MX', data: { preference: 10, exchange } }) as const)),
    isAt: (name, address) => knows(name, { type: address.includes(':') ? 'AAAA' : 'A', data: address }),
    failsAbout: (name) => void failing.add(name),
    isSilentAbout: (name) => void silent.add(name),
    close: async () => {
      socket.close();
      await once(socket, 'close');
    },
  };
}
