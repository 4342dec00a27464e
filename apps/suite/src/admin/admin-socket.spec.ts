import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { adminAddress } from './admin-address.ts';
import { AdminRefusal, askServer, listenForAdmin, NobodyListens, type AdminHandler } from './admin-socket.ts';

const request = { command: 'keys list', input: { arguments: [], options: {} } };

describe('the admin socket', () => {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-admin-'));
  const address = adminAddress(directory);
  afterAll(() => rmSync(directory, { recursive: true }));

  async function asked(handle: AdminHandler): Promise<readonly string[]> {
    const server = await listenForAdmin(address, handle);
    const lines: string[] = [];
    try {
      await askServer(address, request, (line) => lines.push(line));
      return lines;
    } finally {
      await server.close();
    }
  }

  it('tells the lines of the command that it carried out', async () => {
    expect(await asked(async ({ command }, tell) => tell(`${command}: two\nlines`))).toEqual(['keys list: two\nlines']);
  });

  it('tells a refusal in its words', async () => {
    await expect(asked(() => Promise.reject(new Error('No such key.')))).rejects.toThrow(new AdminRefusal('No such key.'));
  });

  it('can be opened by its owner only', async () => {
    const server = await listenForAdmin(address, async () => {});
    expect(statSync(address).mode & 0o777).toBe(0o600);
    await server.close();
  });

  it('takes the place of a socket that a crash left behind, and tells when nobody listens', async () => {
    await expect(askServer(address, request, () => {})).rejects.toThrow(NobodyListens);
    expect(await asked(async () => {})).toEqual([]);
  });

  it('answers garbage and half a request without harm', async () => {
    const server = await listenForAdmin(address, async () => {});
    const answer = async (sent: string) => {
      const socket = connect(address);
      socket.end(sent);
      let text = '';
      for await (const chunk of socket.setEncoding('utf8') as AsyncIterable<string>) text += chunk;
      return text;
    };
    expect(await answer('garbage\n')).toContain('refused');
    expect(await answer('{"command":')).toContain('cut off');
    await server.close();
  });

  it('finds a shorter place for a data directory whose path is too long for a socket', () => {
    expect(Buffer.byteLength(adminAddress(join(directory, 'x'.repeat(120))))).toBeLessThan(104);
  });
});
