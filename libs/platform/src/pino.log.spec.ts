import { PinoLog } from './pino.log.ts';

const written = (readable: boolean) => {
  const lines: string[] = [];
  return { lines, log: new PinoLog({ level: 'info', readable, destination: { write: (line: string) => void lines.push(line) } }) };
};

describe('the log', () => {
  it('is one JSON object per line: a sentence and fields', () => {
    const { lines, log } = written(false);
    log.info('A view was filled.', { view: 'organizations' });
    expect(JSON.parse(lines[0]!)).toMatchObject({ level: 'info', message: 'A view was filled.', view: 'organizations' });
  });

  it('keeps secrets out', () => {
    const { lines, log } = written(false);
    log.warn('A request failed.', { authorization: 'Bearer sk_one', request: { token: 'two', email: 'three@acme.test' } });
    expect(lines.join()).not.toMatch(/sk_one|two|three/);
  });

  it('is readable on a terminal', () => {
    const { lines, log } = written(true);
    log.error('A reaction failed.', { event: 'organization.created', error: new Error('no route') });
    expect(lines[0]).toContain('A reaction failed.');
    expect(lines[0]).toContain('event=organization.created');
    expect(lines[0]).toContain('no route');
  });

  it('leaves out what is below its level', () => {
    const { lines, log } = written(false);
    log.debug('Details.');
    expect(lines).toEqual([]);
  });
});
