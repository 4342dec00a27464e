import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Suite } from '#apps/suite/src/suite';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** The types of which an app keeps examples, in whichever of its folders. */
function typesWithExamples(app: string): ReadonlySet<string> {
  const files = readdirSync(join(ROOT, 'apps', app), { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.examples.json'));
  const kept = files.map(
    (file) => JSON.parse(readFileSync(join(ROOT, 'apps', app, file), 'utf8')) as { readonly events: readonly { readonly type: string }[] },
  );
  return new Set(kept.flatMap(({ events }) => events.map(({ type }) => type)));
}

describe.each(Suite.app.services)('the features of $owner', ({ owner, deciders }) => {
  it('keep a stored example of every type that their deciders fold', () => {
    const known = typesWithExamples(owner);
    const folded = deciders.flatMap(({ sealed }) => Object.keys(sealed));
    expect(folded.length).toBeGreaterThan(0);
    expect(folded.filter((type) => !known.has(type))).toEqual([]);
  });
});
