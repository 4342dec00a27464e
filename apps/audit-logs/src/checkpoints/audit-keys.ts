import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { LogFollowing } from '#libs/event-sourcing/src/following/memory-follower';
import { StateCache } from '#libs/event-sourcing/src/following/state-cache';
import { streamName } from '#libs/event-sourcing/src/log/naming';
import { Vault, type Place } from '#libs/event-sourcing/src/sealing/vault';
import { Clock } from '#libs/platform/src/clock';
import type { RequestContext } from '#libs/platform/src/request-context';
import { systemContext } from '#libs/platform/src/system-context';
import { auditKeysDecider, ensureAuditKey, rotateAuditKey, type AuditKeysState, type NewAuditKey, type StoredAuditKey } from '../domain/audit-keys.decider.ts';
import { rawPublicKey } from '../tree/checkpoint.ts';

/** Private keys that are kept open, of as many environments. */
const MAX_OPEN = 1_000;

/** Anybody may ask for the keys, any number of times. */
@Injectable()
export class AuditKeyStates extends StateCache {
  constructor(following: LogFollowing, repository: Repository, clock: Clock) {
    super('keys of checkpoints', [auditKeysDecider], { following, repository, clock });
  }
}

/** The keys that sign the checkpoints of an environment. The first is made when it is needed. */
@Injectable()
export class AuditKeys {
  private readonly open = new Map<string, KeyObject>();

  constructor(
    private readonly states: AuditKeyStates,
    private readonly repository: Repository,
    private readonly vault: Vault,
    private readonly clock: Clock,
  ) {}

  /** All of them, the newest last. */
  async keys(environment: string): Promise<readonly StoredAuditKey[]> {
    const state = await this.states.state(auditKeysDecider, environment, environment);
    return keysOf(state ?? (await this.decide(systemContext(environment, this.clock.now()), ensureAuditKey(await this.made(environment)))));
  }

  /** The private part of the newest. */
  async signingKey(environment: string): Promise<KeyObject> {
    const { public_key, private_key } = (await this.keys(environment)).at(-1)!;
    const known = this.open.get(public_key);
    if (known !== undefined) return known;
    const der = Buffer.from(await this.vault.open(private_key, placeOf(environment, public_key)), 'base64');
    const key = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
    if (this.open.size >= MAX_OPEN) this.open.delete(this.open.keys().next().value!);
    this.open.set(public_key, key);
    return key;
  }

  /** Has another key sign from now on. */
  async rotate(context: RequestContext): Promise<StoredAuditKey> {
    return keysOf(await this.decide(context, rotateAuditKey(await this.made(context.environment)))).at(-1)!;
  }

  private async decide(context: RequestContext, decision: ReturnType<typeof ensureAuditKey>): Promise<AuditKeysState> {
    const { environment } = context;
    const { state } = await this.repository.transact(auditKeysDecider, context, environment, decision);
    this.states.forget(auditKeysDecider, environment, environment);
    return state;
  }

  private async made(environment: string): Promise<NewAuditKey> {
    const { privateKey } = generateKeyPairSync('ed25519');
    const public_key = rawPublicKey(createPublicKey(privateKey)).toString('base64');
    const text = privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64');
    return { public_key, private_key: await this.vault.seal(text, placeOf(environment, public_key)) };
  }
}

function keysOf(state: AuditKeysState): readonly StoredAuditKey[] {
  return state?.keys ?? [];
}

/** Moved to another key or another environment, the private part does not open. */
function placeOf(environment: string, publicKey: string): Place {
  return { stream: streamName(auditKeysDecider.category, environment, environment), field: `private_key ${publicKey}` };
}
