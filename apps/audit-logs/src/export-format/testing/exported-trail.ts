import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { originOf, rawPublicKey, signedCheckpoint } from '../../tree/checkpoint.ts';
import { commitmentOf, leafDataOf } from '../../tree/leaf.ts';
import { leafHash } from '../../tree/merkle-hash.ts';
import { consistencySpans } from '../../tree/proofs.ts';
import { rootOf, rootsOf } from '../../tree/spans.ts';
import { Edge, TreeNodes } from '../../tree/tiles.ts';
import { contentOf, type ExportedEvent } from '../exported-event.ts';
import { ProofWriter } from '../proof-file.ts';

const ENVIRONMENT = 'environment_01J0000000000000000000000E';
export const ORGANIZATION = 'org_01J0000000000000000000000A';
const signingKey = generateKeyPairSync('ed25519').privateKey;
export const publicKey = rawPublicKey(createPublicKey(signingKey));

/** A trail in memory, and what is made of it. */
export class ExportedTrail {
  private readonly edge = Edge.empty();
  private readonly tiles = new Map<string, Buffer>();
  readonly nodes = new TreeNodes({ read: (level, index) => Promise.resolve(this.tiles.get(`${level}/${index}`)!) }, this.edge);

  constructor(trail: readonly ExportedEvent[]) {
    for (const event of trail) {
      const commitment = commitmentOf(Buffer.from(event.salt, 'hex'), contentOf(event));
      const leaf = leafHash(leafDataOf({ environment: ENVIRONMENT, organization_id: ORGANIZATION, id: event.id, received_at: event.received_at, commitment }));
      for (const { level, index, hashes } of this.edge.append(leaf)) this.tiles.set(`${level}/${index}`, Buffer.concat(hashes));
    }
  }

  async checkpoint(size = this.edge.size, privateKey = signingKey): Promise<string> {
    const root = await rootOf({ from: 0, to: size }, this.nodes);
    return signedCheckpoint({ origin: originOf(ENVIRONMENT, ORGANIZATION), size, root, time: '2026-11-23T06:10:00.000Z' }, privateKey);
  }

  async consistency(from: number, to: number): Promise<readonly Buffer[]> {
    return rootsOf(consistencySpans(from, to), this.nodes);
  }

  async proof(leaves: readonly number[], checkpoint: string): Promise<string> {
    const writer = new ProofWriter(checkpoint, this.nodes);
    return writer.head() + (await writer.events(leaves)) + (await writer.rest());
  }
}
