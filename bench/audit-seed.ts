import { randomBytes } from 'node:crypto';
import { Suite } from '#apps/suite/src/suite';
import { CreateAuditLogEvent } from '#libs/contracts/src/audit-logs/operations';
import { ListEnvironments } from '#libs/contracts/src/environments/operations';
import { environmentVariables } from '#libs/platform/src/config/environment';
import { endWithSentence } from '#libs/platform/src/ending';
import { PinoLog } from '#libs/platform/src/pino.log';
import { SYSTEM_ENVIRONMENT } from '#libs/platform/src/request-context';
import { systemContext } from '#libs/platform/src/system-context';

/**
 * Records audit events of 600 bytes, as `wrk/events.lua` sends them, in one organization, by the operation itself and so by everything behind it, but without HTTP: ACTIONS ORGANIZATION EVENTS.
 * They happened one after the other within twenty days, each up to an hour before it stands in the trail.
 */
const AT_ONCE = 256;
const [DAYS_MS, LATE_MS] = [20 * 86_400_000, 3_600_000];
const AGENT = 'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36';

const [actionNames, organization_id, count] = process.argv.slice(2) as [string, string, string];
const actions = actionNames.split(',');
const events = Number(count);
const log = new PinoLog({ level: 'warn', readable: false, destination: process.stderr });
const suite = await Suite.start({ variables: environmentVariables(), log, onFatal: endWithSentence });
const environments = await suite.call(Object.assign(new ListEnvironments(), { context: systemContext(SYSTEM_ENVIRONMENT, Date.now()) }));
const environment = environments[0]!.id;
const end = Date.now();
let next = 0;
await Promise.all(Array.from({ length: AT_ONCE }, recordOthers));
await suite.close();
process.exit(0);

async function recordOthers(): Promise<void> {
  while (next < events) {
    const operation = Object.assign(new CreateAuditLogEvent(), { organization_id, event: eventOf(next++) });
    operation.context = { ...systemContext(environment, Date.now()), idempotencyKey: id() };
    await suite.call(operation);
  }
}

function eventOf(number: number): CreateAuditLogEvent['event'] {
  const occurredAt = end - DAYS_MS * (1 - number / events) - Math.random() * LATE_MS;
  return {
    action: actions[number % actions.length]!,
    occurred_at: new Date(occurredAt).toISOString(),
    actor: { id: `user_${id()}`, type: 'user', name: `Person ${number % 5_000}`, metadata: { role: 'member' } },
    targets: [{ id: `document_${id()}`, type: 'document', name: `Plan ${number}` }],
    context: { location: `192.0.2.${number % 256}`, user_agent: AGENT },
    metadata: { request_id: id(), plan: 'enterprise', pages: number % 90 },
  };
}

function id(): string {
  return `01KF${randomBytes(11).toString('hex').toUpperCase()}`;
}
