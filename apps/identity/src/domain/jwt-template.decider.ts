import type { JwtTemplate } from '#libs/contracts/src/jwt-template/jwt-template';
import type { Decider, Decision, Fact } from '#libs/event-sourcing/src/deciding/decider';

// These types are the storage format: a stored name or shape is never edited.

export type JwtTemplateEvent = Fact<'jwt_template.set', Pick<JwtTemplate, 'content'>>;

export type JwtTemplateState = JwtTemplate | null;

function evolve(state: JwtTemplateState, event: JwtTemplateEvent & { readonly at: string }): JwtTemplateState {
  return { object: 'jwt_template', ...event.data, created_at: state?.created_at ?? event.at, updated_at: event.at };
}

/** Under the id of its environment. */
export const jwtTemplateDecider: Decider<JwtTemplateState, JwtTemplateEvent> = {
  category: 'jwt_template',
  foldVersion: 1,
  initial: null,
  sealed: { 'jwt_template.set': null },
  evolve,
  toPublicEvent: () => null,
};

/** `content` was parsed before. */
export function setTemplate(content: string): Decision<JwtTemplateState, JwtTemplateEvent> {
  return (state) => (state?.content === content ? [] : [{ type: 'jwt_template.set', data: { content } }]);
}
