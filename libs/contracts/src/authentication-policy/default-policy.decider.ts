import type { AuthenticationPolicy } from './authentication-policy.ts';

/** What the policy of an organization is that was never changed, of this release. */
export const DEFAULT_POLICY: Pick<AuthenticationPolicy, 'methods' | 'sso' | 'mfa' | 'jit_membership' | 'invitations'> = {
  methods: { password: true, magic_auth: true, apple_oauth: true, github_oauth: true, google_oauth: true, microsoft_oauth: true },
  sso: 'optional',
  mfa: 'inherit',
  jit_membership: true,
  invitations: 'allowed',
};
