import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const CITATION = /architecture §(\d+)(?: steps? (\d+)(?: to (\d+))?)?/g;

/** The numbered sections of the document, each with the numbers of its steps. */
function sections(): ReadonlyMap<string, ReadonlySet<string>> {
  const parts = readFileSync(join(ROOT, 'docs/architecture.md'), 'utf8').split(/^## (?=\d+\. )/m);
  return new Map(
    parts.slice(1).map((part) => [part.slice(0, part.indexOf('.')), new Set([...part.matchAll(/^(\d+)\. /gm)].slice(1).map(([, step]) => step!))]),
  );
}

interface Citation {
  readonly place: string;
  readonly section: string;
  readonly steps: readonly string[];
}

/** What the code cites: a comment that is broken into lines counts as one text. */
function citations(): readonly Citation[] {
  const files = ['apps', 'libs', 'test', 'bench'].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((file) => join(folder, file)),
  );
  return files
    .filter((file) => file.endsWith('.ts') && !file.endsWith('citations.spec.ts'))
    .flatMap((file) => {
      const text = readFileSync(join(ROOT, file), 'utf8').replace(/\s*\n\s*(?:\*|\/\/)?\s*/g, ' ');
      const found = [...text.matchAll(CITATION)];
      const signs = text.split('§').length - 1;
      // A section sign that cites nothing which can be looked up.
      if (signs > found.length) return [{ place: file, section: '?', steps: [] }];
      return found.map(([, section, first, last]) => ({ place: file, section: section!, steps: [first, last].filter((step) => step !== undefined) }));
    });
}

describe('docs/architecture.md', () => {
  const known = sections();

  it('numbers its sections without a gap', () => {
    expect([...known.keys()]).toEqual(Array.from(known, (_, index) => String(index + 1)));
  });

  it('has every section and step that the code cites', () => {
    const all = citations();
    expect(all.length).toBeGreaterThan(0);
    expect(all.filter(({ section, steps }) => !known.has(section) || steps.some((step) => !known.get(section)!.has(step)))).toEqual([]);
  });
});
