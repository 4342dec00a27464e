import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { countEvents, seed, type Seeded } from './seed.ts';
import { Suite } from './suite.ts';

/** A line of the table. */
export interface Row {
  readonly what: string;
  readonly target: string;
  readonly measured: string;
  readonly met: boolean;
}

export interface Pace {
  /** Of one load, where the scenario does not name its own. */
  readonly seconds: number;
  /** Of a load that has to be sustained. */
  readonly sustainedSeconds: number;
  readonly mixedSeconds: number;
  /** In a cluster, behind one address each. */
  readonly clusterOrganizations: number;
  /** In a log that is gone through as a whole. */
  readonly bulkOrganizations: number;
  /** In the log whose followers' memory is measured. */
  readonly users: number;
  /** Of so many people, a tenth as many organizations. */
  readonly sessions: number;
  /** In a directory that a product syncs, or lists. */
  readonly people: number;
  /** In an audit trail that is exported. */
  readonly auditEvents: number;
  /** In an audit trail that is read by pages. */
  readonly listedAuditEvents: number;
  /** Where the processes of a cluster leave what their processor did; null: nowhere. */
  readonly profiles: string | null;
}

/** One measurement. Those with the same number of organizations share a data directory, in the order in which they are listed. */
export interface Scenario {
  readonly name: string;
  readonly organizations: 'none' | 'some' | 'many';
  measure(ground: Ground, pace: Pace): Promise<readonly Row[]>;
}

/** A data directory with so many organizations, and what is known of it. */
export class Ground {
  private constructor(
    readonly directory: string,
    readonly organizations: number,
    readonly seeded: Seeded,
    /** How long `gatehouse rebuild` took, and over how many events. */
    readonly rebuild: { readonly events: number; readonly milliseconds: number },
  ) {}

  static async prepare(organizations: number): Promise<Ground> {
    const directory = await mkdtemp(join(tmpdir(), 'gatehouse-bench-'));
    if (organizations === 0) return new Ground(directory, 0, { organizationPaths: [], domainPaths: [], searchPaths: [] }, { events: 0, milliseconds: 0 });
    const data = join(directory, 'data');
    const seeded = await seed(data, organizations);
    const events = await countEvents(data);
    const ground = new Ground(directory, organizations, seeded, { events, milliseconds: await Suite.command(data, 'rebuild') });
    // Announces what was seeded, so that no measurement pays for it.
    await ground.withSuite((suite) => suite.caughtUp());
    return ground;
  }

  /** Where the suite stores. */
  get data(): string {
    return join(this.directory, 'data');
  }

  /** Starts the suite on this ground for one measurement. */
  async withSuite<Result>(measure: (suite: Suite) => Promise<Result>): Promise<Result> {
    const suite = await Suite.start(this.data);
    try {
      return await measure(suite);
    } finally {
      await suite.stop();
    }
  }

  /** A file of lines, for wrk to read. */
  async fileOf(name: string, lines: readonly string[]): Promise<string> {
    const path = join(this.directory, `${name}.txt`);
    await writeFile(path, lines.join('\n'));
    return path;
  }

  async remove(): Promise<void> {
    await rm(this.directory, { recursive: true, force: true });
  }
}
