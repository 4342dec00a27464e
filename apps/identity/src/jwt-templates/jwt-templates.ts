import { Injectable } from '@nestjs/common';
import { Handles } from '#libs/contracts/src/handles';
import type { JwtTemplate } from '#libs/contracts/src/jwt-template/jwt-template';
import { GetJwtTemplate, UpdateJwtTemplate } from '#libs/contracts/src/jwt-template/operations';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { notFound } from '#libs/platform/src/domain-error';
import { jwtTemplateDecider, setTemplate, type JwtTemplateState } from '../domain/jwt-template.decider.ts';
import { readTemplate } from '../domain/token-template.decider.ts';
import { KnownStates } from '../readers/known-states.ts';

@Injectable()
export class JwtTemplates {
  constructor(
    private readonly repository: Repository,
    private readonly states: KnownStates,
  ) {}

  @Handles(GetJwtTemplate)
  async get({ context: { environment } }: GetJwtTemplate): Promise<JwtTemplate> {
    return requireTemplate(await this.repository.load(jwtTemplateDecider, environment, environment), environment);
  }

  @Handles(UpdateJwtTemplate)
  async update({ context, content }: UpdateJwtTemplate): Promise<JwtTemplate> {
    const { environment } = context;
    readTemplate(content);
    const { state } = await this.repository.transact(jwtTemplateDecider, context, environment, setTemplate(content));
    this.states.forget(jwtTemplateDecider, environment, environment);
    return requireTemplate(state, environment);
  }
}

function requireTemplate(state: JwtTemplateState, environment: string): JwtTemplate {
  if (state === null) throw notFound('JWT template', environment);
  return state;
}
