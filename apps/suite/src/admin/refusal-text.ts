import { DomainError } from '#libs/platform/src/domain-error';

/** A refusal as a person at a terminal reads it. */
export function refusalText(error: unknown): string {
  if (!(error instanceof DomainError)) return error instanceof Error ? error.message : String(error);
  // Most messages begin with their field.
  const fields = error.details.errors?.map(({ field, message }) => (message.startsWith(`${field} `) ? message : `${field}: ${message}`)) ?? [];
  return fields.length === 0 ? error.message : fields.join(' ');
}
