import { keepsNothingOf } from './scim-resource.decider.ts';
import { attributeNamed, subAttributeNamed, type ScimAttribute } from './scim-schema.decider.ts';
import { ENTERPRISE_SCHEMA, OWN_SCHEMA, stepsOf } from './scim-values.decider.ts';

/**
 * Whether anything of a person can stand at the path that a custom attribute is from. Products and listings may send what no schema has, so what is not known is let in; of what a schema has, the
 * parts that it names.
 */
export function canBePicked(source: string): boolean {
  const steps = stepsOf(source);
  const [first = '', second] = steps;
  // What is chosen by a filter nobody looks for; a name of one's own may have brackets.
  if (steps.includes('') || isPlace(first.split('[', 1)[0]!, first)) return false;
  if (!first.toLowerCase().startsWith('urn:')) return !keepsNothingOf('User', first) && hasParts(attributeNamed('User', first), steps.slice(1));
  if (first.toLowerCase() === OWN_SCHEMA.toLowerCase()) return false;
  const isEnterprise = first.toLowerCase() === ENTERPRISE_SCHEMA.toLowerCase();
  return second === undefined || !isEnterprise || hasParts(attributeNamed('User', second, ENTERPRISE_SCHEMA), steps.slice(2));
}

function isPlace(beforeBracket: string, step: string): boolean {
  return beforeBracket !== step && attributeNamed('User', beforeBracket) !== null;
}

function hasParts(attribute: ScimAttribute | null, [part, ...below]: readonly string[]): boolean {
  if (attribute === null || part === undefined) return true;
  if (below.length > 0) return false;
  return attribute.type === 'complex' && subAttributeNamed(attribute, part) !== null;
}
