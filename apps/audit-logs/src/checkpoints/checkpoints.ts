import { Injectable } from '@nestjs/common';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { Clock } from '#libs/platform/src/clock';
import { DomainError } from '#libs/platform/src/domain-error';
import { systemContext } from '#libs/platform/src/system-context';
import { auditCheckpointDecider, recordCheckpoint, type RecordedCheckpoint } from '../domain/audit-checkpoint.decider.ts';
import type { TrailOwner } from '../sealing/trail-keys.ts';
import { originOf, signedCheckpoint } from '../tree/checkpoint.ts';
import { EMPTY_ROOT } from '../tree/merkle-hash.ts';
import type { TreeHead } from '../tree/proofs.ts';
import { TrailTrees, type TrailTree } from '../tree/trail-trees.ts';
import { AuditKeys } from './audit-keys.ts';

/** What a trail is by its latest checkpoint. */
export type TrailStanding = 'intact' | 'shorter' | 'altered';

/** Nothing is signed that contradicts what was. */
export class TrailDiverged extends DomainError {
  constructor(
    readonly standing: Exclude<TrailStanding, 'intact'>,
    { size }: RecordedCheckpoint,
    now: number,
  ) {
    const sentence =
      standing === 'shorter'
        ? `The trail has ${now} events, and its checkpoint says ${size}: it has lost some.`
        : `The first ${size} events of the trail are not those of its checkpoint: it was altered.`;
    super('conflict', 'audit_log_trail_diverged', sentence);
  }
}

/** Checkpoints of trails: what is signed follows from the log alone, so whoever signs too late signs nothing wrong. */
@Injectable()
export class Checkpoints {
  constructor(
    private readonly trees: TrailTrees,
    private readonly keys: AuditKeys,
    private readonly repository: Repository,
    private readonly clock: Clock,
  ) {}

  /** Null before the first. */
  latest({ environment, organization }: TrailOwner): Promise<RecordedCheckpoint | null> {
    return this.repository.load(auditCheckpointDecider, environment, organization);
  }

  /**
   * One that has everything which was recorded before; null where nothing was. Where less time than `unlessWithin` (milliseconds) has passed since the latest, that one.
   * @throws TrailDiverged
   */
  async record(owner: TrailOwner, { unlessWithin = 0 }: { readonly unlessWithin?: number } = {}): Promise<RecordedCheckpoint | null> {
    const { environment, organization } = owner;
    const latest = await this.latest(owner);
    const now = this.clock.now();
    if (latest !== null && Math.abs(now - Date.parse(latest.time)) < unlessWithin) return latest;
    const tree = await this.intact(owner, latest);
    if (tree.size === (latest?.size ?? 0)) return latest;
    const checkpoint = await this.signed(owner, await tree.head(), now);
    return (await this.repository.transact(auditCheckpointDecider, systemContext(environment, now), organization, recordCheckpoint(checkpoint))).state;
  }

  /** Of a trail that has no event yet: recorded nowhere, since nothing can contradict it. */
  async ofNothing(owner: TrailOwner): Promise<RecordedCheckpoint> {
    return this.signed(owner, { size: 0, root: EMPTY_ROOT }, this.clock.now());
  }

  /** Whether a tree begins with what its checkpoint says. */
  async standing(tree: TrailTree, { size, root }: RecordedCheckpoint): Promise<TrailStanding> {
    if (tree.size < size) return 'shorter';
    return (await tree.head(size)).root.toString('base64') === root ? 'intact' : 'altered';
  }

  private async signed({ environment, organization }: TrailOwner, { size, root }: TreeHead, now: number): Promise<RecordedCheckpoint> {
    const time = new Date(now).toISOString();
    const note = signedCheckpoint({ origin: originOf(environment, organization), size, root, time }, await this.keys.signingKey(environment));
    return { size, root: root.toString('base64'), time, note };
  }

  private async intact(owner: TrailOwner, latest: RecordedCheckpoint | null): Promise<TrailTree> {
    const tree = await this.trees.tree(owner);
    if (latest === null) return tree;
    const standing = await this.standing(tree, latest);
    if (standing === 'intact') return tree;
    if (standing === 'shorter') throw new TrailDiverged(standing, latest, tree.size);
    // It may be what is stored of the tree that is wrong, and not the log.
    await this.trees.remake(owner);
    const remade = await this.trees.tree(owner);
    if ((await this.standing(remade, latest)) !== 'intact') throw new TrailDiverged('altered', latest, remade.size);
    return remade;
  }
}
