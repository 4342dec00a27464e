import { Injectable } from '@nestjs/common';
import type { RequestContext } from '#libs/platform/src/request-context';
import { jwtTemplateDecider } from '../domain/jwt-template.decider.ts';
import { readTemplate, type TemplateSubjects, type TokenTemplate } from '../domain/token-template.decider.ts';
import { KnownStates } from './known-states.ts';

/** What the template of an environment adds to access tokens. */
@Injectable()
export class TokenTemplates {
  /** Read once for each state, which is kept in memory until it changes. */
  private readonly read = new WeakMap<object, TokenTemplate>();

  constructor(private readonly states: KnownStates) {}

  /** Whether there is one: whoever would have to look the subjects up first asks that. */
  async isSet({ environment }: Pick<RequestContext, 'environment'>): Promise<boolean> {
    return (await this.states.state(jwtTemplateDecider, environment, environment)) !== null;
  }

  /** @throws DomainError `token_too_big` */
  async claims({ environment }: Pick<RequestContext, 'environment'>, subjects: TemplateSubjects): Promise<Readonly<Record<string, unknown>>> {
    const state = await this.states.state(jwtTemplateDecider, environment, environment);
    if (state === null) return {};
    let template = this.read.get(state);
    if (template === undefined) this.read.set(state, (template = readTemplate(state.content)));
    return template(subjects);
  }
}
