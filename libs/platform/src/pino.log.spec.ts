import { MongoBulkWriteError } from 'mongodb';
import { DomainError } from './domain-error.ts';
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

  describe('of an error', () => {
    const ROW = { _id: 'user_1', email: 'ada@canary.test', body: { secret: 'whsec_canary' } };
    /** As the driver throws it: with the rows that it was to write, and the key that it met. */
    const bulkError = (): Error => {
      const errmsg = 'E11000 duplicate key error collection: gatehouse.users index: email_1 dup key: { email: "ada@canary.test" }';
      const write = { index: 0, code: 11000, errmsg, errInfo: { ROW }, op: ROW, err: { op: ROW } };
      return new MongoBulkWriteError({ message: errmsg, code: 11000, writeErrors: [write] } as never, { insertedIds: ROW } as never);
    };
    const lineOf = (error: unknown, readable = false): string => {
      const { lines, log } = written(readable);
      log.error('Rows could not be written.', { view: 'users', error });
      expect(lines).toHaveLength(1);
      return lines[0]!;
    };

    it.each([true, false])('holds none of the rows that a driver hangs on it (readable: %p)', (readable) => {
      const line = lineOf(bulkError(), readable);
      expect(line).not.toMatch(/canary/);
      expect(line).toContain('E11000 duplicate key error collection: gatehouse.users index: email_1 dup key: ');
      if (!readable)
        expect(JSON.parse(line)).toMatchObject({
          view: 'users',
          error: { type: 'MongoBulkWriteError', code: 11000, stack: expect.stringMatching(/\n\s+at /) },
        });
    });

    it('nor of what caused it, however deep', () => {
      const error = new Error('The views cannot be written.', { cause: new Error('Once more.', { cause: bulkError() }) });
      const { error: logged } = JSON.parse(lineOf(error)) as { error: { message: string; stack: string } };
      expect(JSON.stringify(logged)).not.toMatch(/canary/);
      expect(logged.message).toBe('The views cannot be written.');
      for (const part of ['caused by Error: Once more.', 'caused by MongoBulkWriteError: E11000']) expect(logged.stack).toContain(part);
    });

    it('has its type, message, code and frames, and nothing that was added', () => {
      const system = Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:27017'), {
        code: 'ECONNREFUSED',
        syscall: 'connect',
        request: ROW,
        toJSON: () => ROW,
      });
      expect(JSON.parse(lineOf(system))).toMatchObject({ error: { type: 'Error', message: system.message, code: 'ECONNREFUSED', syscall: 'connect' } });
      expect(Object.keys((JSON.parse(lineOf(system)) as { error: object }).error).sort()).toEqual(['code', 'message', 'stack', 'syscall', 'type']);
      const refused = new DomainError('conflict', 'email_not_available', 'The email is taken.', {
        errors: [{ code: 'taken', field: 'ada@canary.test' }],
      } as never);
      for (const error of [system, refused, Object.assign(new Error('x'), { code: ROW }), new AggregateError([bulkError()], 'Many.')])
        expect(lineOf(error)).not.toMatch(/canary/);
    });

    it('shows nothing of text that could not be parsed', () => {
      let error: unknown;
      try {
        JSON.parse('{"email":"ada@canary.test"');
        JSON.parse('ada@canary.test');
      } catch (thrown) {
        error = thrown;
      }
      expect(lineOf(error)).not.toMatch(/canary/);
      expect(lineOf(Object.assign(new SyntaxError('Unexpected token \'a\', "ada@canary.test" is not valid JSON')))).not.toMatch(/canary/);
    });

    it.each([ROW, 'ada@canary.test', [ROW], null, undefined, 7n])('shows nothing of %p, which is no error', (thrown) => {
      expect(lineOf(thrown)).not.toMatch(/canary/);
    });

    it('is short, whatever its message', () => {
      expect(lineOf(new Error('x'.repeat(1_000_000))).length).toBeLessThan(20_000);
    });
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
