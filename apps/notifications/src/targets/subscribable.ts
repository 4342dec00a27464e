import { isPublicEventName, PUBLIC_EVENTS, type PublicEventName } from '#libs/contracts/src/events';
import { DomainError } from '#libs/platform/src/domain-error';

/** Each name once. @throws DomainError naming each that no webhook can subscribe to */
export function subscribable(names: readonly string[]): readonly PublicEventName[] {
  const errors = names.flatMap((name, index) =>
    isPublicEventName(name) && PUBLIC_EVENTS[name].webhook
      ? []
      : [{ code: 'unknown_event_type', field: `events.${index}`, message: `Webhooks know no event '${name}'.` }],
  );
  if (errors.length > 0) throw new DomainError('invalid', 'invalid_request_parameters', 'Validation failed.', { errors });
  return [...new Set(names as readonly PublicEventName[])];
}
