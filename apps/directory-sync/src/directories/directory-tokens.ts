import { hash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { DirectoryToken, type DirectoryTokenWithValue } from '#libs/contracts/src/directories/directory';
import { CreateDirectoryToken, ListDirectoryTokens, RevokeDirectoryToken } from '#libs/contracts/src/directories/operations';
import { Handles } from '#libs/contracts/src/handles';
import type { List, Serialised } from '#libs/contracts/src/operation';
import { serialiserOf } from '#libs/contracts/src/serialiser';
import { Deletions } from '#libs/event-sourcing/src/deciding/deletions';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { ShownSecrets } from '#libs/event-sourcing/src/sealing/shown-secrets';
import { notFound, unavailable } from '#libs/platform/src/domain-error';
import { derivedId } from '#libs/platform/src/ids';
import { pageOfIds } from '#libs/read-models/src/pages';
import { createToken, directoryDecider, requireDirectory, revokeToken, toPublicToken } from '../domain/directory.decider.ts';
import { DirectoryReader } from '../readers/directory-reader.ts';
import { DirectoryAddresses } from './directory-addresses.ts';

const serialise = serialiserOf(DirectoryToken);
const SUFFIX_LENGTH = 4;

/** By which products of customers write into directories. */
@Injectable()
export class DirectoryTokens {
  constructor(
    private readonly repository: Repository,
    private readonly reader: DirectoryReader,
    private readonly secrets: ShownSecrets,
    private readonly deletions: Deletions,
    private readonly addresses: DirectoryAddresses,
  ) {}

  @Handles(CreateDirectoryToken)
  async create({ context, id: directoryId }: CreateDirectoryToken): Promise<DirectoryTokenWithValue> {
    await this.reader.require(context, directoryId);
    const id = `directory_token_${derivedId(context.commandId, 0)}`;
    const value = `dst_${(await this.secrets.of(context, 'directory_token')).toString('base64url')}`;
    const token = { hash: hashOfToken(value), token_suffix: value.slice(-SUFFIX_LENGTH) };
    await this.addresses.register(context, { id: token.hash, environment_id: context.environment });
    const { state } = await this.repository.transact(directoryDecider, context, directoryId, createToken(directoryId, token));
    const made = requireDirectory(state, directoryId).tokens.find((each) => each.id === id);
    if (made === undefined) throw notFound('Directory token', id);
    // Another key of the environment has taken the place of a lost one since: the retry would show a value that works nowhere.
    if (made.hash !== token.hash) throw unavailable('The token was created, but its value is lost: revoke it and create another.');
    return { ...toPublicToken(state, id)!, token: value };
  }

  @Handles(ListDirectoryTokens)
  async list(query: ListDirectoryTokens): Promise<Serialised<List<DirectoryToken>>> {
    const directory = await this.reader.require(query.context, query.id);
    return pageOfIds(query, {
      idPrefix: 'directory_token',
      ids: directory.tokens.map(({ id }) => id).sort(),
      isKnown: (id) => [...directory.tokens, ...directory.revoked].some((token) => token.id === id),
      textsOf: (ids) => ids.map((id) => serialise(toPublicToken(directory, id)!)),
    });
  }

  @Handles(RevokeDirectoryToken)
  async revoke({ context, id, token_id }: RevokeDirectoryToken): Promise<void> {
    await this.deletions.once({ context, what: 'Directory token', id: token_id }, async () => {
      await this.reader.require(context, id);
      return this.repository.transact(directoryDecider, context, id, revokeToken(id, token_id));
    });
  }
}

export function hashOfToken(value: string): string {
  return hash('sha256', value, 'hex');
}
