import { ListOf, Optional, Ref, Text } from '../fields.ts';
import { created, Operation, Query } from '../operation.ts';
import { Organization } from '../organizations/organization.ts';
import { User } from '../users/user.ts';

const WIDGET_SCOPES = [
  'widgets:users-table:manage',
  'widgets:domain-verification:manage',
  'widgets:sso:manage',
  'widgets:api-keys:manage',
  'widgets:dsync:manage',
  'widgets:audit-log-streaming:manage',
  'widgets:pipes:manage',
] as const;
export type WidgetScope = (typeof WIDGET_SCOPES)[number];

/** What an embedded widget shows to act for somebody. */
export class WidgetToken {
  @Text({ doc: 'The token: valid for an hour.', secret: true, example: 'eyJhbGciOiJSUzI1NiIs…' }) token!: string;
}

// A query, although it is a POST: a stored answer would hold the token.
@Operation({
  post: '/widgets/token',
  owner: 'identity',
  summary: 'Make a token for a widget',
  description:
    'It is valid for an hour, for one organization and one of its active members, with those of the scopes that the roles of the member hold as permissions in the organization. `scopes` needs `organization_id`.',
  answers: created(WidgetToken),
})
export class CreateWidgetToken extends Query<WidgetToken> {
  @Optional() @Ref(() => Organization, { doc: 'The organization that the widget manages.' }) organization_id?: string;
  @Optional() @Ref(() => User, { doc: 'Who uses the widget.' }) user_id?: string;
  @Optional()
  @ListOf({ oneOf: WIDGET_SCOPES }, { doc: 'What the widget is to do.', maxItems: 20, unique: true, example: ['widgets:users-table:manage'] })
  scopes?: readonly WidgetScope[];
}
