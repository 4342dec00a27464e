import { Integer, Optional, Picked, Ref, Text } from '../fields.ts';
import { arrayOf, Command, created, empty, ok, Operation, Query } from '../operation.ts';
import { Environment, EnvironmentKey, EnvironmentKeyWithValue } from './environment.ts';

// The command line and the gateway ask these; nothing of them is reachable over HTTP, since whoever could would own every environment.

@Operation({ internal: true, owner: 'identity', summary: 'Create an environment', answers: created(Environment), refuses: ['environment_name_already_used'] })
export class CreateEnvironment extends Command<Environment> {
  @Picked(Environment) name!: string;
}

@Operation({ internal: true, owner: 'identity', summary: 'List environments', answers: arrayOf(Environment) })
export class ListEnvironments extends Query<readonly Environment[]> {}

@Operation({
  internal: true,
  owner: 'identity',
  summary: 'Create a key',
  answers: created(EnvironmentKeyWithValue),
  refuses: ['environment_key_limit_reached'],
})
export class CreateEnvironmentKey extends Command<EnvironmentKeyWithValue> {
  @Text({ doc: 'Name of the environment.' }) environment_name!: string;
  @Picked(EnvironmentKey) name!: string;
}

@Operation({ internal: true, owner: 'identity', summary: 'List the keys of one or of all environments', answers: arrayOf(EnvironmentKey) })
export class ListEnvironmentKeys extends Query<readonly EnvironmentKey[]> {
  @Optional() @Text({ doc: 'Name of the environment; absent: all.' }) environment_name?: string;
}

@Operation({
  internal: true,
  owner: 'identity',
  summary: 'Replace a key',
  description: 'The old one goes on working for `overlap_seconds`.',
  answers: created(EnvironmentKeyWithValue),
  refuses: ['environment_key_revoked', 'environment_key_limit_reached'],
})
export class RotateEnvironmentKey extends Command<EnvironmentKeyWithValue> {
  @Ref(() => EnvironmentKey, { doc: 'The key to replace.' }) id!: string;
  @Integer({ doc: 'How long the old key goes on working.', minimum: 0, maximum: 604_800, default: 86_400 }) overlap_seconds!: number;
}

@Operation({ internal: true, owner: 'identity', summary: 'Revoke a key at once', answers: empty(204) })
export class RevokeEnvironmentKey extends Command<void> {
  @Ref(() => EnvironmentKey, { doc: 'The key.' }) id!: string;
}

/** A key that may be used now, as the gateway needs it. */
export class UsableEnvironmentKey {
  @Picked(EnvironmentKey) id!: string;
  @Picked(EnvironmentKey) environment_id!: string;
  @Picked(EnvironmentKey) name!: string;
  @Picked(Environment) client_id!: string;
  @Picked(EnvironmentKey) expires_at!: string | null;
}

@Operation({
  internal: true,
  owner: 'identity',
  summary: 'Find a usable key by the SHA-256 of its value',
  answers: ok(UsableEnvironmentKey),
  refuses: ['unauthorized'],
})
export class FindEnvironmentKey extends Query<UsableEnvironmentKey> {
  @Text({ doc: 'SHA-256 of the value, in lower-case hex.', pattern: /^[0-9a-f]{64}$/ }) hash!: string;
}

@Operation({ internal: true, owner: 'identity', summary: 'Find an environment by its client id', answers: ok(Environment) })
export class FindClient extends Query<Environment> {
  @Text({ doc: 'The client id.', max: 128 }) client_id!: string;
}

@Operation({
  internal: true,
  owner: 'identity',
  summary: 'Make sure that an environment exists and has this key',
  description: 'Asked at every start, by every replica at once. A key that was revoked stays revoked.',
  answers: ok(Environment),
  refuses: ['client_id_already_used'],
})
export class EnsureEnvironmentKey extends Command<Environment> {
  @Picked(Environment) name!: string;
  @Text({ doc: 'The key itself.', min: 20, max: 255, pattern: /^sk_[\x21-\x7e]+$/, secret: true }) value!: string;
  @Optional() @Picked(Environment) client_id?: string;
}
