import { operations, type RegisteredOperation } from './operation.ts';

/** Every operation with its kind, its owner and its route, aligned in columns; those between services come last. */
export function operationsTable(): string {
  const rows = operations()
    .map((operation) => [operation.name, operation.kind, operation.options.owner, routeOf(operation)])
    .sort(([one, , , oneRoute], [other, , , otherRoute]) => compare(oneRoute!, otherRoute!) || compare(one!, other!));
  const all = [['operation', 'kind', 'owner', 'route'], ...rows];
  const widths = all[0]!.map((_, column) => Math.max(...all.map((row) => row[column]!.length)));
  const line = (row: readonly string[]): string => `| ${row.map((cell, column) => cell.padEnd(widths[column]!)).join(' | ')} |`;
  const [head, ...body] = all.map(line);
  return [head, line(widths.map((width) => '-'.repeat(width))), ...body, ''].join('\n');
}

function routeOf({ route }: RegisteredOperation): string {
  return route === null ? 'internal' : `${route.method.toUpperCase()} ${route.path}`;
}

/** Paths stay together, whatever their method; what has none comes last. */
function compare(one: string, other: string): number {
  const [oneKey, otherKey] = [sortKey(one), sortKey(other)];
  return oneKey < otherKey ? -1 : oneKey > otherKey ? 1 : 0;
}

function sortKey(cell: string): string {
  const [method, path] = cell.split(' ');
  return path === undefined ? `~${cell}` : `${path} ${method}`;
}
