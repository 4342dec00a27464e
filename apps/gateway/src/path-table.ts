interface KnownPath {
  readonly methods: readonly string[];
  readonly segments: readonly string[];
}

/** Which methods a path has; asked only for requests that no route took. */
export class PathTable {
  private readonly paths: KnownPath[] = [];

  /** `path` in the router's form: parameters begin with a colon, a star stands for the rest. */
  add(methods: string | readonly string[], path: string): void {
    this.paths.push({ methods: [methods].flat(), segments: path.split('/') });
  }

  /** Empty for an unknown path. */
  methodsOf(url: string): readonly string[] {
    const segments = url.split('?', 1)[0]!.split('/').map(decoded);
    const fitting = this.paths.filter((path) => fits(path.segments, segments));
    // A path under an open one is that of a sub-resource, and never of an object that is called so.
    const meant = fitting.filter((path) => !isOpen(path) || !fitting.some((other) => isUnder(other, path)));
    return [...new Set(meant.flatMap(({ methods }) => methods))].sort();
  }
}

function fits(template: readonly string[], segments: readonly string[]): boolean {
  const before = template.length - 1;
  if (template[before] === '*') return segments.slice(before).join('/') !== '' && fits(template.slice(0, before), segments.slice(0, before));
  return segments.length === template.length && template.every((part, index) => part === segments[index] || (isParameter(part) && segments[index] !== ''));
}

function isOpen({ segments }: KnownPath): boolean {
  return segments.at(-1) === '*';
}

function isUnder(path: KnownPath, open: KnownPath): boolean {
  const { length } = open.segments;
  if (isOpen(path) || path.segments.length <= length) return false;
  return open.segments.slice(0, length - 1).every((part, index) => part === path.segments[index] || (isParameter(part) && isParameter(path.segments[index]!)));
}

function isParameter(part: string): boolean {
  return part.startsWith(':');
}

/** As the router does it, which leaves the escapes of slashes alone. */
function decoded(segment: string): string {
  try {
    return decodeURI(segment);
  } catch {
    return segment;
  }
}
