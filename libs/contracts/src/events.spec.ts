import { eventDataOf, isPublicEventName, PUBLIC_EVENT_NAMES, WEBHOOK_EVENT_NAMES } from './events.ts';
import { operations } from './operation.ts';
import './organizations/operations.ts';
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
});
