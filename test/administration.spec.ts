import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { AdministeredStream } from '#apps/audit-logs/src/administration/administered-stream';
import { LEFT_OUT, NOT_ADMINISTRATION, TELLINGS } from '#apps/audit-logs/src/administration/administrative-facts';
import { toldContent } from '#apps/audit-logs/src/administration/told-content';
import { Suite } from '#apps/suite/src/suite';
import { ADMINISTRATIVE_FACTS, isAdministrative } from '#libs/contracts/src/administration';
import type { AuditLogContent } from '#libs/contracts/src/audit-logs/audit-log-event';
import type { RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import { canonicalJson } from '#libs/platform/src/canonical-json';
import { Canaries } from '#libs/testing/src/canaries';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const ENVIRONMENT = 'environment_01KF0000000000000000000000';
/** Recorded by no decider, so that no example of it is stored. */
const BY_OPERATORS = { 'data_key.given_up': { key: `person.user-${ENVIRONMENT}-user_01KF0000000000000000000000` } } as const;

interface Example {
  readonly type: string;
  readonly at: string;
  readonly data: unknown;
}

/** What every release wrote, as streams. */
const streams: readonly (readonly Example[])[] = ['identity', 'authorization', 'directory-sync', 'notifications', 'audit-logs'].flatMap((app) =>
  readdirSync(join(ROOT, 'apps', app), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.examples.json'))
    .map((file) => (JSON.parse(readFileSync(join(ROOT, 'apps', app, file), 'utf8')) as { readonly events: readonly Example[] }).events),
);

function recordOf({ type, at, data }: Example, index: number): RecordedEvent {
  const actor = { id: 'environment_key_01KF0000000000000000000000', source: 'api', name: 'console' } as const;
  return {
    ...{ id: `01KF000000000000000000${String(index).padStart(4, '0')}`, stream: `some-${ENVIRONMENT}-key`, version: index + 1, position: String(index) },
    ...{ type, shape: 1, data, subject: null, public: [] },
    meta: { environment: ENVIRONMENT, actor, requestId: 'request', commandId: `command ${index}`, at: Date.parse(at) },
  };
}

/** What is told of a stream. */
function toldOf(examples: readonly Example[]): readonly AuditLogContent[] {
  const stream = new AdministeredStream();
  return examples.flatMap((example, index) => {
    const record = recordOf(example, index);
    const change = stream.take(record);
    return change === null ? [] : [toldContent(record, change, null)];
  });
}

/** Of keys those of organizations are told of; the stored ones are of people. */
function asOfOrganization({ type, data, at }: Example): Example {
  return { type, at, data: type === 'api_key.created' ? { ...(data as object), owner: { type: 'organization', id: 'org_01KF0000000000000000000000' } } : data };
}

/** The same with canaries in the place of what is nobody's to know. */
function planted(value: unknown, canaries: Canaries, name = ''): unknown {
  if (Array.isArray(value)) return value.map((each) => planted(each, canaries, name));
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(Object.entries(value).map(([each, inner]) => [each, planted(inner, canaries, each)]));
  if (typeof value !== 'string' || !/^(?:hash|secret|client_secret|webhook_secret|private_key|verification_token|digest)$/.test(name)) return value;
  const canary = `${name}-${canaries.names.length}-`.padEnd(64, 'Canary');
  canaries.add(`${name} ${canaries.names.length}`, canary);
  return value.startsWith('enc.v1.') ? `enc.v1.key.${canary}` : canary;
}

describe('the administration of an environment', () => {
  const deciders = Suite.app.services.flatMap((service) => service.deciders);

  it('is told of by every fact, or it is said why not', () => {
    const undecided = deciders.flatMap(({ category, sealed }) =>
      NOT_ADMINISTRATION.includes(category) ? [] : Object.keys(sealed).filter((type) => !isAdministrative(type) && !(type in LEFT_OUT)),
    );
    expect(undecided).toEqual([]);
    const known = new Set([...deciders.flatMap(({ sealed }) => Object.keys(sealed)), ...Object.keys(BY_OPERATORS)]);
    expect([...ADMINISTRATIVE_FACTS, ...Object.keys(LEFT_OUT)].filter((type) => !known.has(type))).toEqual([]);
    const categories = deciders.map(({ category }) => category);
    expect(NOT_ADMINISTRATION.filter((category) => !categories.includes(category))).toEqual([]);
  });

  it('says nothing that lies sealed for somebody, who may be erased', () => {
    const personal = deciders.flatMap(({ sealed }) => Object.entries(sealed).filter(([type, parts]) => isAdministrative(type) && parts !== null));
    expect(personal).toEqual([]);
  });

  it('is told of each kind of fact, without its secrets, within the limits of every event', () => {
    const canaries = new Canaries();
    const examples = [
      ...streams.map((stream) => stream.map(asOfOrganization)),
      Object.entries(BY_OPERATORS).map(([type, data]) => ({ type, data, at: '2026-01-15T12:00:00.000Z' })),
    ];
    const told = examples.flatMap((stream) => toldOf(planted(stream, canaries) as readonly Example[]));
    const text = told.map((each) => canonicalJson(each)).join('\n');
    expect(canaries.names.length).toBeGreaterThan(10);
    expect(canaries.foundIn(text)).toEqual([]);
    expect(text).not.toContain('enc.v1.');
    const actions = new Set(told.map(({ action }) => action));
    expect(Object.keys(TELLINGS).filter((type) => !actions.has(type))).toEqual([]);
    for (const { metadata } of told)
      for (const [name, value] of Object.entries(metadata)) {
        expect(name).toMatch(/^[a-zA-Z0-9_-]{1,40}$/);
        expect(String(value).length).toBeLessThanOrEqual(500);
      }
  });
});
