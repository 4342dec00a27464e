import { Const, Id, Ref, Text, Time } from '../fields.ts';

/** A world of its own: data of one environment is never seen in another. The API key of a request decides which one it is in. */
export class Environment {
  @Const('environment') object!: 'environment';
  @Id('environment', { doc: 'Identifies the environment.' }) id!: string;
  @Text({ doc: 'Its name: unique, and for good.', pattern: /^[a-z0-9][a-z0-9-]{0,62}$/, example: 'production' }) name!: string;
  @Text({ doc: 'Identifies the environment to browsers and in events; no secret.', pattern: /^client_[A-Za-z0-9]{1,100}$/ }) client_id!: string;
  @Time({ doc: 'When it was created.' }) created_at!: string;
  @Time({ doc: 'When it changed last.' }) updated_at!: string;
}

/** A secret key that manages one environment. Its value is shown once and stored nowhere. */
export class EnvironmentKey {
  @Const('environment_key') object!: 'environment_key';
  @Id('environment_key', { doc: 'Identifies the key; not a secret.' }) id!: string;
  @Ref(() => Environment, { doc: 'The environment that it manages.' }) environment_id!: string;
  @Text({ doc: 'Tells it from others.', min: 1, max: 255, example: 'continuous integration' }) name!: string;
  @Text({ doc: 'Its beginning and its last four characters.', example: 'sk_…1f9a' }) obfuscated_value!: string;
  @Time({ doc: 'When it was created.' }) created_at!: string;
  @Time({ doc: 'When it stops working, after a rotation.', nullable: true }) expires_at!: string | null;
  @Time({ doc: 'When it was revoked.', nullable: true }) revoked_at!: string | null;
}

/** A key in the one answer that shows its value. */
export class EnvironmentKeyWithValue extends EnvironmentKey {
  @Text({ doc: 'The key itself: it cannot be shown again.', secret: true }) value!: string;
}
