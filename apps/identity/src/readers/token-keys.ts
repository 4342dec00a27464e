import { createPrivateKey, createPublicKey, sign, verify, type KeyObject } from 'node:crypto';
import { promisify } from 'node:util';
import { Injectable } from '@nestjs/common';
import type { TokenAlgorithm } from '#libs/contracts/src/environment-settings/environment-settings';
import type { PublicTokenKey } from '#libs/contracts/src/token-keys/key-set';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { streamName } from '#libs/event-sourcing/src/log/naming';
import { Vault, type Place } from '#libs/event-sourcing/src/sealing/vault';
import { Clock } from '#libs/platform/src/clock';
import { PublicAddressSettings } from '#libs/platform/src/config/settings';
import { unavailable } from '#libs/platform/src/domain-error';
import type { RequestContext } from '#libs/platform/src/request-context';
import { systemContext } from '#libs/platform/src/system-context';
import { environmentSettingsDecider, settingsOf } from '../domain/environment-settings.decider.ts';
import {
  algorithmOf,
  ensureTokenKey,
  publishedKeys,
  rotateTokenKey,
  signingKey,
  tokenKeysDecider,
  type NewTokenKey,
  type StoredTokenKey,
  type TokenKeysState,
} from '../domain/token-keys.decider.ts';
import { EnvironmentSettingsReader } from './environment-settings-reader.ts';
import { KnownStates } from './known-states.ts';
import { madeTokenKey } from './made-token-key.ts';

// With a callback they work in threads of their own: a signature of RSA takes as long as a hundred checks. One of ES256 takes less than it takes to hand it over.
const signInThread = promisify(sign);
const verifyInThread = promisify(verify);

/** Private keys that are kept open, of as many environments. */
const MAX_OPEN = 1_000;
const LONGEST_TOKEN = 16 * 1_024;

export type Claims = Readonly<Record<string, unknown>>;

/** What tells kinds of tokens apart: each guard takes one. */
export interface TokenKind {
  /** In the header. */
  readonly typ: string;
  /** Whom it is for; absent: its claims say so. */
  readonly aud?: string;
}

interface OpenKey {
  readonly kid: string;
  readonly alg: TokenAlgorithm;
  readonly key: KeyObject;
  /** By `typ`: the header as it stands in tokens. */
  readonly headers: Map<string, string>;
}

/** The keys by which the tokens of an environment are signed and verified. They are made when they are needed first. */
@Injectable()
export class TokenKeys {
  private readonly open = new Map<string, OpenKey>();
  private readonly making = new Map<string, Promise<TokenKeysState>>();

  constructor(
    private readonly states: KnownStates,
    private readonly environments: EnvironmentSettingsReader,
    private readonly repository: Repository,
    private readonly vault: Vault,
    private readonly clock: Clock,
    private readonly settings: PublicAddressSettings,
  ) {}

  /** A token in the compact form. @throws DomainError `service_unavailable` where its key cannot be read */
  async sign(environment: string, claims: Claims, { typ, aud }: TokenKind): Promise<string> {
    const stored = signingKey(await this.current(environment), this.now());
    if (stored === null) throw unavailable('No key of this environment signs at the moment.');
    const open = this.open.get(stored.public_key.kid) ?? (await this.opened(environment, stored));
    const payload = aud === undefined ? claims : { ...claims, aud };
    const input = `${headerOf(open, typ)}.${Buffer.from(JSON.stringify(payload)).toString('base64url')}`;
    const signer = { key: open.key, dsaEncoding: 'ieee-p1363' } as const;
    const signature = open.alg === 'ES256' ? sign('sha256', Buffer.from(input), signer) : await signInThread('sha256', Buffer.from(input), signer);
    return `${input}.${signature.toString('base64url')}`;
  }

  /** The claims of a token of this kind that is valid now; null for anything else. */
  async verify(environment: string, token: string, { typ, aud }: TokenKind): Promise<Claims | null> {
    const parts = token.length > LONGEST_TOKEN ? [] : token.split('.');
    const [header, claims] = parts.slice(0, 2).map(parsed);
    if (parts.length !== 3 || header == null || claims == null || header['typ'] !== typ) return null;
    if (typeof claims['exp'] !== 'number' || claims['exp'] * 1_000 <= this.clock.now()) return null;
    if (aud !== undefined && claims['aud'] !== aud) return null;
    const key = (await this.keySet(environment)).find(({ kid, alg }) => kid === header['kid'] && alg === header['alg']);
    if (key === undefined) return null;
    const verifier = { key: createPublicKey({ key: { ...key }, format: 'jwk' }), dsaEncoding: 'ieee-p1363' as const };
    const isGenuine = await verifyInThread('sha256', Buffer.from(`${parts[0]}.${parts[1]}`), verifier, Buffer.from(parts[2]!, 'base64url'));
    return isGenuine ? claims : null;
  }

  /** The public keys: of the chosen algorithm, and others until what they signed has expired. */
  async keySet(environment: string): Promise<readonly PublicTokenKey[]> {
    return publishedKeys(await this.current(environment), this.now());
  }

  /** What tokens name as their issuer. */
  async issuer(environment: string, clientId: string): Promise<string> {
    const { issuer } = await this.environments.settings({ environment });
    return issuer ?? `${this.settings.PUBLIC_URL.replace(/\/+$/, '')}/user_management/${clientId}`;
  }

  /** Has another key sign: a day later, or now. Answers the one that signs last. */
  async rotate(context: RequestContext, options: { readonly isNow: boolean; readonly isDropped: boolean }): Promise<StoredTokenKey> {
    const { environment } = context;
    const made = await this.made(environment, await this.algorithm(environment));
    const { state } = await this.repository.transact(tokenKeysDecider, context, environment, rotateTokenKey(made, options));
    this.states.forget(tokenKeysDecider, environment, environment);
    return state!.keys.at(-1)!;
  }

  /** With a key of the algorithm that the settings say. */
  private async current(environment: string): Promise<TokenKeysState> {
    const [state, { token_algorithm }] = await Promise.all([
      this.states.state(tokenKeysDecider, environment, environment),
      this.environments.settings({ environment }),
    ]);
    if (algorithmOf(state) === token_algorithm) return state;
    let making = this.making.get(environment);
    if (making === undefined) {
      making = this.ensured(environment).finally(() => this.making.delete(environment));
      this.making.set(environment, making);
    }
    return making;
  }

  private async ensured(environment: string): Promise<TokenKeysState> {
    // What this process knows of the settings may be a moment old: two that disagree would make key after key.
    const algorithm = await this.algorithm(environment);
    const state = await this.repository.load(tokenKeysDecider, environment, environment);
    if (algorithmOf(state) === algorithm) return state;
    const made = await this.made(environment, algorithm);
    const context = systemContext(environment, this.clock.now());
    const ensured = await this.repository.transact(tokenKeysDecider, context, environment, ensureTokenKey(made));
    this.states.forget(tokenKeysDecider, environment, environment);
    return ensured.state;
  }

  /** As the log has it. */
  private async algorithm(environment: string): Promise<TokenAlgorithm> {
    return settingsOf(await this.repository.load(environmentSettingsDecider, environment, environment)).token_algorithm;
  }

  private async made(environment: string, algorithm: TokenAlgorithm): Promise<NewTokenKey> {
    const { public_key, private_key } = await madeTokenKey(algorithm, this.clock.now());
    return { public_key, private_key: await this.vault.seal(private_key, placeOf(environment, public_key)) };
  }

  private async opened(environment: string, { public_key, private_key }: StoredTokenKey): Promise<OpenKey> {
    const { kid, alg } = public_key;
    const der = Buffer.from(await this.vault.open(private_key, placeOf(environment, public_key)), 'base64');
    const open = { kid, alg, key: createPrivateKey({ key: der, format: 'der', type: 'pkcs8' }), headers: new Map<string, string>() };
    if (this.open.size >= MAX_OPEN) this.open.delete(this.open.keys().next().value!);
    this.open.set(kid, open);
    return open;
  }

  private now(): string {
    return new Date(this.clock.now()).toISOString();
  }
}

function headerOf({ kid, alg, headers }: OpenKey, typ: string): string {
  let header = headers.get(typ);
  if (header === undefined) headers.set(typ, (header = Buffer.from(JSON.stringify({ alg, typ, kid })).toString('base64url')));
  return header;
}

/** Moved to another key or another environment, the private part does not open. */
function placeOf(environment: string, { kid }: PublicTokenKey): Place {
  return { stream: streamName(tokenKeysDecider.category, environment, environment), field: `private_key ${kid}` };
}

function parsed(part: string): Claims | null {
  try {
    const value: unknown = JSON.parse(Buffer.from(part, 'base64url').toString());
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Claims) : null;
  } catch {
    return null;
  }
}
