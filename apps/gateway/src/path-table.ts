/** Which methods a path has; asked only for requests that no route took. */
export class PathTable {
  private readonly routes: { readonly methods: readonly string[]; readonly segments: readonly string[] }[] = [];

  /** `path` in the router's form: parameters begin with a colon, a star stands for the rest. */
  add(methods: string | readonly string[], path: string): void {
    this.routes.push({ methods: [methods].flat(), segments: path.split('/') });
  }

  /** Empty for an unknown path. */
  methodsOf(url: string): readonly string[] {
    const segments = url.split('?', 1)[0]!.split('/');
    const methods = this.routes.filter((route) => matches(route.segments, segments)).flatMap((route) => route.methods);
    return [...new Set(methods)].sort();
  }
}

function matches(template: readonly string[], segments: readonly string[]): boolean {
  const isOpen = template.at(-1) === '*';
  if (isOpen ? segments.length < template.length : segments.length !== template.length) return false;
  return template.every((part, index) => part === segments[index] || part === '*' || (part.startsWith(':') && segments[index] !== ''));
}
