import { feature } from '#libs/runtime/src/feature';
import { tokenKeysDecider } from '../domain/token-keys.decider.ts';
import { TokenKeys } from '../readers/token-keys.ts';
import { TokenKeySets } from './token-key-sets.ts';

export const tokenKeys = feature({ deciders: [tokenKeysDecider], providers: [TokenKeys, TokenKeySets] });
