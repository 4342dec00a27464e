import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { EventStore, RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { LmdbReadModels } from '#libs/read-models/src/lmdb.read-models';
import { VIEWS } from '../testing/given-engines.ts';
import { chance, Follower, GivenHistory } from '../testing/given-history.ts';
import { EnvironmentModel } from './environment-model.ts';
import { OrganizationIndex } from './organization-index.ts';
import { IndexRows } from './organization-loading.ts';

const SEEDS = Array.from({ length: 12 }, (_, seed) => seed + 1);
const STEPS = 400;

let directory: string;
let storage: LmdbStorage;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'loading-'));
  storage = await LmdbStorage.open({ directory });
});
afterAll(async () => {
  await storage.close();
  await rm(directory, { recursive: true });
});

interface Given {
  readonly history: GivenHistory;
  readonly records: readonly RecordedEvent[];
}

function given(seed: number): Given {
  const history = new GivenHistory(chance(seed));
  const versions = new Map<string, number>();
  const records: RecordedEvent[] = [];
  const record = (events: ReturnType<GivenHistory['step']>): void => {
    for (const event of events) {
      const stream = history.streamOf(event);
      const version = (versions.get(stream) ?? 0) + 1;
      versions.set(stream, version);
      records.push({ ...event, stream, version, position: String(records.length + 1).padStart(16, '0') });
    }
  };
  for (const events of history.beginning()) record(events);
  for (let step = 0; step < STEPS; step++) record(history.step());
  return { history, records };
}

function modelOf({ history, records }: Given): EnvironmentModel {
  const model = new EnvironmentModel(history.environment);
  for (const record of records)
    if (record.stream.startsWith('authorization_model-')) model.apply(record);
    else if (record.stream.startsWith('environment_settings-')) model.applySettings(record);
  return model;
}

/** What the index that was there all the time says. */
function followed(known: Given): OrganizationIndex {
  const model = new EnvironmentModel(known.history.environment);
  const follower = new Follower(new OrganizationIndex(known.history.organization, known.history.environment, model).loaded(), model);
  for (const record of known.records) follower.hear(record);
  return follower.index;
}

/** Fills the tables as views do that are at different places of the log, none before the checkpoint. */
async function fill({ records }: Given, checkpoint: number, next: (below: number) => number): Promise<LmdbReadModels> {
  const readModels = new LmdbReadModels(storage);
  for (const view of VIEWS) {
    const table = readModels.table(tableOf(view));
    await table.clear();
    const rows = new Map<string, { row: object | null; at: RecordedEvent; until: number }>();
    for (const [place, record] of records.entries()) {
      if (!view.handles.includes(record.type)) continue;
      for (const id of view.idsOf(record)) {
        // Each row was read at a moment of its own.
        const before = rows.get(id) ?? { row: null, at: record, until: checkpoint + next(records.length - checkpoint + 1) };
        if (place < before.until) rows.set(id, { ...before, row: view.evolve(before.row, record, id), at: record });
        else rows.set(id, before);
      }
    }
    for (const [id, { row, at }] of rows)
      if (row !== null)
        await table.write([{ environment: at.meta.environment, id, position: at.position, revision: at.version, text: JSON.stringify(row), row }]);
  }
  return readModels;
}

function isTheSame(index: OrganizationIndex, other: OrganizationIndex, { history }: Given): number {
  let allowed = 0;
  const wrong: string[] = [];
  const alive = (each: OrganizationIndex): readonly (readonly string[])[] => [
    history.memberships.filter((id) => each.membershipNumber(id) !== -1),
    history.resources.filter((id) => each.tree.nodeById(id) !== undefined),
  ];
  expect(alive(index)).toEqual(alive(other));
  for (const membership of history.memberships)
    for (const resource of history.resources)
      for (const { slug } of history.permissions) {
        const says = [index, other].map((each) => {
          const node = each.tree.nodeById(resource);
          const number = each.membershipNumber(membership);
          return node !== undefined && number !== -1 && each.allows(number, each.model.permissionBySlug(slug)!, node);
        });
        if (says[0] !== says[1]) wrong.push(`${membership} ${slug} ${resource}`);
        if (says[0] === true) allowed++;
      }
  expect(wrong).toEqual([]);
  return allowed;
}

it.each(SEEDS)('an index that is loaded while writes go on says what one says that heard everything (seed %i)', async (seed) => {
  const next = chance(1_000 + seed);
  const known = given(seed);
  const checkpoint = 10 + next(known.records.length - 10);
  const readModels = await fill(known, checkpoint, next);
  const events = { read: async () => known.records.filter(({ stream }) => stream.startsWith('organization_roles-')) } as unknown as EventStore;
  const index = new OrganizationIndex(known.history.organization, known.history.environment, modelOf(known));
  const follower = new Follower(index, index.model);
  for (const record of known.records.slice(0, checkpoint)) if (record.type === 'user.deleted') follower.hear(record);
  await new IndexRows(readModels, events).read(known.history.environment, index, () => {});
  for (const record of known.records.slice(checkpoint)) follower.hear(record);
  index.loaded();
  expect(index.isAlive).toBe(true);
  expect(isTheSame(index, followed(known), known)).toBeGreaterThan(0);
});
