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
    expect(routes.lastIndexOf('GET /organizations/{id}') - routes.indexOf('DELETE /organizations/{id}')).toBeLessThan(5);
    expect(routes.slice(routes.indexOf('internal')).every((route) => route === 'internal')).toBe(true);
  });

  it('misses no file of operations', () => {
    const imported = [...readFileSync(new URL('all.ts', here), 'utf8').matchAll(/^import '\.\/(.+)';$/gm)].map((match) => match[1]);
    const files = readdirSync(here, { recursive: true, encoding: 'utf8' })
      .map((file) => file.replaceAll('\\', '/'))
      .filter((file) => file.endsWith('/operations.ts'));
    expect(imported).toEqual([...files].sort());
  });
});
