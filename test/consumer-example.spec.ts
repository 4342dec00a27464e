import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Message } from '#libs/messaging/src/message-bus';
import { givenKafka } from '#libs/testing/src/engines/given';
import { givenKafkaBus } from '#libs/testing/src/given-kafka-bus';
import { ROOT } from '#libs/testing/src/process';

const EXAMPLE = join(ROOT, 'docs/examples/consumer.mjs');
const given = await givenKafka();

describe('the consumer of the docs', () => {
  it('is the one on the page', () => {
    const page = readFileSync(join(ROOT, 'docs/consuming-events.md'), 'utf8');
    const code = readFileSync(EXAMPLE, 'utf8');
    expect(page).toContain(`\`\`\`js\n${code}\`\`\``);
    expect(code.split('\n').filter((line) => line !== '').length).toBeLessThanOrEqual(21);
  });

  (given === null ? it.skip : it)('prints each event once and in order, also when it comes again, and goes on where it was', async () => {
    const environment = `environment_${randomUUID()}`;
    const topic = `${environment}.identity`;
    const bus = await givenKafkaBus(given!, { partitions: 3 });
    const event = (number: number): Message => ({
      key: 'org_1',
      value: JSON.stringify({ id: `event_${number}`, event: 'organization.updated', data: { id: `org_${number}` }, created_at: 'now' }),
      headers: { ce_id: `event_${number}` },
    });
    await bus.publish(topic, [event(1), event(2)]);
    await bus.publish(topic, [event(1), event(2), event(3)]);
    expect(await printed(environment, 3)).toEqual(['now organization.updated org_1', 'now organization.updated org_2', 'now organization.updated org_3']);
    await bus.publish(topic, [event(4)]);
    expect(await printed(environment, 1)).toEqual(['now organization.updated org_4']);
    await bus.close();
  });
});

/** What the example prints until it has printed so many lines, and is told to stop. */
async function printed(environment: string, count: number): Promise<readonly string[]> {
  const consumer = spawn(process.execPath, [EXAMPLE, given!, environment, `spec-${environment}`], { stdio: ['ignore', 'pipe', 'ignore'] });
  const ended = once(consumer, 'close');
  let text = '';
  // The client logs to the same place, as JSON.
  const lines = (): string[] => text.split('\n').filter((line) => line !== '' && !line.startsWith('{'));
  for await (const part of consumer.stdout.setEncoding('utf8')) {
    text += part as string;
    if (lines().length >= count && !consumer.killed) consumer.kill('SIGTERM');
  }
  expect((await ended)[0]).toBe(0);
  return lines();
}
