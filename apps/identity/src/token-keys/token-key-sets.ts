import { Injectable } from '@nestjs/common';
import { Handles } from '#libs/contracts/src/handles';
import { Serialised } from '#libs/contracts/src/operation';
import { serialiserOf } from '#libs/contracts/src/serialiser';
import { TokenKeySet, type PublicTokenKey, type RotatedTokenKey } from '#libs/contracts/src/token-keys/key-set';
import { GetTokenKeySet, RotateTokenKeys } from '#libs/contracts/src/token-keys/operations';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { SYSTEM_ENVIRONMENT } from '#libs/platform/src/request-context';
import { ReadModels, type Table } from '#libs/read-models/src/read-models';
import { TokenKeys } from '../readers/token-keys.ts';
import { environmentsView, type StoredEnvironment } from '../views/environments.view.ts';

const serialise = serialiserOf(TokenKeySet);
const MAX_TEXTS = 1_000;

@Injectable()
export class TokenKeySets {
  private readonly environments: Table<StoredEnvironment>;
  /** What is answered, as text, by environment: everybody's clients ask for it. */
  private readonly texts = new Map<string, { readonly kids: string; readonly answer: Serialised<TokenKeySet> }>();

  constructor(
    private readonly keys: TokenKeys,
    readModels: ReadModels,
  ) {
    this.environments = readModels.table(tableOf(environmentsView));
  }

  @Handles(GetTokenKeySet)
  async get({ context: { environment } }: GetTokenKeySet): Promise<Serialised<TokenKeySet>> {
    const keys = await this.keys.keySet(environment);
    const kids = kidsOf(keys);
    const known = this.texts.get(environment);
    if (known?.kids === kids) return known.answer;
    const answer = new Serialised<TokenKeySet>(serialise({ keys }));
    if (this.texts.size >= MAX_TEXTS) this.texts.clear();
    this.texts.set(environment, { kids, answer });
    return answer;
  }

  @Handles(RotateTokenKeys)
  async rotate({ context, environment_name, now, drop }: RotateTokenKeys): Promise<RotatedTokenKey> {
    const { id: environment } = await this.environments.requireBy({ environment: SYSTEM_ENVIRONMENT, deadline: context.deadline }, 'name', environment_name);
    const { public_key, signs_from } = await this.keys.rotate({ ...context, environment }, { isNow: now || drop, isDropped: drop });
    return { kid: public_key.kid, alg: public_key.alg, signs_from };
  }
}

function kidsOf(keys: readonly PublicTokenKey[]): string {
  return keys.map(({ kid }) => kid).join(' ');
}
