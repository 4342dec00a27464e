import { Flag, Text } from '../fields.ts';
import { Command, ok, Operation, Query } from '../operation.ts';
import { RotatedTokenKey, TokenKeySet } from './key-set.ts';

@Operation({
  get: '/sso/jwks/{client_id}',
  owner: 'identity',
  environmentFrom: 'client_id',
  cachedFor: 300,
  summary: 'Get the keys that verify tokens',
  description: 'A key is there a day before it signs, unless that is an emergency, and until no token can be valid that it signed.',
  answers: ok(TokenKeySet),
})
export class GetTokenKeySet extends Query<TokenKeySet> {
  @Text({ doc: 'The client id of the environment.', example: 'client_01JG8K3M0Q5R7T9V1X3Z5B7D9F' }) client_id!: string;
}

@Operation({
  internal: true,
  owner: 'identity',
  summary: 'Have another key sign tokens',
  description: 'It signs a day later, when everybody has read it; where one is waiting for that already, it is answered.',
  answers: ok(RotatedTokenKey),
})
export class RotateTokenKeys extends Command<RotatedTokenKey> {
  @Text({ doc: 'Name of the environment.' }) environment_name!: string;
  @Flag({ doc: 'It signs at once.', default: false }) now!: boolean;
  @Flag({ doc: 'The keys of before leave the key set at once, and their tokens are refused.', default: false }) drop!: boolean;
}
