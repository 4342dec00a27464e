import { DomainError, unavailable } from './domain-error.ts';
import { patiently } from './patience.ts';
import { PinoLog } from './pino.log.ts';
import { StartRefused } from './start-refused.ts';

describe('what is asked for patiently', () => {
  const lines: string[] = [];
  const log = new PinoLog({ level: 'warn', readable: false, destination: { write: (line: string) => void lines.push(line) } });
  const asking = { log, what: 'The naming key' };
  const busy = (times: number) => {
    let tries = 0;
    return async (): Promise<number> => {
      if (++tries <= times) throw unavailable('The database did not answer in time.');
      return tries;
    };
  };

  it('is asked for again while an engine is busy, and the log says so', async () => {
    await expect(patiently(busy(2), asking)).resolves.toBe(3);
    expect(lines).toHaveLength(2);
    expect(JSON.parse(lines[0]!)).toMatchObject({ message: 'The naming key cannot be asked for yet, and is asked for again.' });
  });

  it('refuses the start where that goes on for too long, and says what was asked', async () => {
    const refusal = patiently(busy(Infinity), { ...asking, patience: 100 });
    await expect(refusal).rejects.toBeInstanceOf(StartRefused);
    await expect(refusal).rejects.toThrow(/^The naming key cannot be asked for, since 0.1 s.$/);
  });

  it.each([new StartRefused('The log is empty.'), new TypeError('wrong'), new DomainError('unavailable', 'event_log_damaged', 'It is damaged.')])(
    'is refused at once for another reason: %p',
    async (error) => {
      let tries = 0;
      const ask = (): Promise<never> => {
        tries++;
        return Promise.reject(error);
      };
      await expect(patiently(ask, asking)).rejects.toBe(error);
      expect(tries).toBe(1);
    },
  );
});
