import { readdirSync, readFileSync } from 'node:fs';
import './all.ts';
import { operations } from './operation.ts';
import { operationsTable } from './operations-table.ts';

const here = new URL('.', import.meta.url);

describe('the table of operations', () => {
  it('has a line for each, with its kind, its owner and its route', () => {
    const lines = operationsTable().trimEnd().split('\n');
    expect(lines).toHaveLength(operations().length + 2);
    expect(lines.map((line) => line.replaceAll(/ +/g, ' '))).toContain('| CreateOrganization | command | identity | POST /organizations |');
    expect(new Set(lines.map((line) => line.length)).size).toBe(1);
  });

  it('keeps paths together and puts what has none last', () => {
    const routes = operationsTable()
      .trimEnd()
      .split('\n')
      .slice(2)
      .map((line) => line.split('|')[4]!.trim());
    const paths = routes.map((route) => route.split(' ').at(-1)!);
    // Each path is met once, however many methods it has.
    const met = paths.filter((path, index) => path !== paths[index - 1]);
    expect(met).toEqual([...new Set(paths)]);
    expect(met.length).toBeLessThan(paths.length);
    expect([met.at(-1), paths.includes('/organizations/{id}')]).toEqual(['internal', true]);
  });

  it('misses no file of operations', () => {
    const imported = [...readFileSync(new URL('all.ts', here), 'utf8').matchAll(/^import '\.\/(.+)';$/gm)].map((match) => match[1]);
    const files = readdirSync(here, { recursive: true, encoding: 'utf8' })
      .map((file) => file.replaceAll('\\', '/'))
      .filter((file) => file.endsWith('/operations.ts'));
    expect(imported).toEqual([...files].sort());
  });
});
