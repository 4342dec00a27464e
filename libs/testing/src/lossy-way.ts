import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';

/** A way to an engine on which answers get lost: what was asked arrives and is done, and nobody hears of it. */
export class LossyWay {
  private readonly sockets = new Set<Socket>();
  private isLossy = false;

  private readonly server = createServer((from) => {
    const to = connect(this.port, '127.0.0.1');
    const pass = (one: Socket, other: Socket, isAnswer: boolean): void => {
      this.sockets.add(one);
      one.on('data', (data) => {
        if (!isAnswer || !this.isLossy) other.write(data);
      });
      one.on('error', () => other.destroy());
      one.on('close', () => {
        this.sockets.delete(one);
        other.destroy();
      });
    };
    pass(from, to, false);
    pass(to, from, true);
  });

  private constructor(private readonly port: number) {}

  /** To the engine at this address, which has one host. Answers the way and the address that leads over it. */
  static async to(address: string): Promise<{ readonly way: LossyWay; readonly address: string }> {
    const [, before, port, after] = /^([a-z]+:\/\/(?:[^/@]*@)?[^/:]+:)(\d+)(.*)$/.exec(address)!;
    const way = new LossyWay(Number(port));
    await new Promise<void>((resolve) => way.server.listen(0, '127.0.0.1', resolve));
    return { way, address: `${before}${(way.server.address() as AddressInfo).port}${after}` };
  }

  /** For so many milliseconds no answer arrives; then all connections break, so that none arrives late. */
  async loseAnswers(milliseconds: number): Promise<void> {
    this.isLossy = true;
    await pause(milliseconds);
    for (const socket of this.sockets) socket.destroy();
    this.isLossy = false;
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await new Promise((resolve) => this.server.close(resolve));
  }
}
