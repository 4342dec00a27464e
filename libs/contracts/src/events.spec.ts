import { eventDataOf, isPublicEventName, PUBLIC_EVENT_NAMES, WEBHOOK_EVENT_NAMES } from './events.ts';
import './all.ts';
import { Event } from './feed/event.ts';
import { fieldsOf, type Field } from './field.ts';
import { operations, type Class } from './operation.ts';
import { OrganizationDomain } from './organizations/organization.ts';

describe('the public events', () => {
  it('are 111, of which webhooks may have 93', () => {
    expect(PUBLIC_EVENT_NAMES).toHaveLength(111);
    expect(WEBHOOK_EVENT_NAMES).toHaveLength(93);
    expect(WEBHOOK_EVENT_NAMES).not.toContain('vault.data.read');
  });

  it('know the class of what they show, where a slice fires them', () => {
    expect(eventDataOf('organization_domain.verified')).toBe(OrganizationDomain);
    expect(eventDataOf('waitlist_user.created')).toBeNull();
  });

  it('are recognised by name alone', () => {
    expect(isPublicEventName('organization.created')).toBe(true);
    for (const name of ['organization.renamed', 'constructor', '__proto__', '']) expect(isPublicEventName(name)).toBe(false);
  });

  it('include whatever an operation says that it emits', () => {
    for (const { options } of operations()) for (const name of options.emits ?? []) expect(PUBLIC_EVENT_NAMES).toContain(name);
  });

  it('never show a secret field', () => {
    const shown = [Event, ...PUBLIC_EVENT_NAMES.map(eventDataOf)].filter((type) => type !== null).flatMap((type) => fieldsBelow(type));
    expect(shown.filter((field) => field.secret === true).map((field) => field.name)).toEqual([]);
  });
});

/** The fields of a class and of all classes inside it. */
function fieldsBelow(type: Class, seen: ReadonlySet<Class> = new Set()): readonly Field[] {
  if (seen.has(type)) return [];
  return fieldsOf(type).flatMap((field) => {
    const inner = field.kind === 'nested' ? field.of() : field.kind === 'list' && field.items.kind === 'nested' ? field.items.of() : null;
    return inner === null ? [field] : [field, ...fieldsBelow(inner, new Set([...seen, type]))];
  });
}
