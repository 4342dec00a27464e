import { Const, Text, Time } from '../fields.ts';

/** What access tokens say beside what they always say. */
export class JwtTemplate {
  @Const('jwt_template') object!: 'jwt_template';
  @Text({
    doc: 'A JSON object; its texts may contain `{{ user.email }}` and the like, of `user`, `organization` and `organization_membership`.',
    max: 10_000,
    example: '{"plan": "{{ organization.metadata.plan || \\"free\\" }}"}',
  })
  content!: string;
  @Time({ doc: 'When it was created.' }) created_at!: string;
  @Time({ doc: 'When it changed last.' }) updated_at!: string;
}
