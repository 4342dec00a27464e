import type { RegisteredOperation } from '#libs/contracts/src/operation';

type Route = NonNullable<RegisteredOperation['route']>;

/** Which methods a path has; asked only for requests that no route took. */
export class PathTable {
  private readonly templates: readonly { readonly method: string; readonly segments: readonly string[] }[];

  constructor(routes: readonly Route[]) {
    this.templates = routes.map(({ method, path }) => ({ method: method.toUpperCase(), segments: path.split('/') }));
  }

  /** Empty for an unknown path. */
  methodsOf(url: string): readonly string[] {
    const segments = url.split('?', 1)[0]!.split('/');
    const methods = this.templates.filter((template) => matches(template.segments, segments)).map(({ method }) => method);
    return [...new Set(methods.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])))].sort();
  }
}

function matches(template: readonly string[], segments: readonly string[]): boolean {
  return template.length === segments.length && template.every((part, index) => part === segments[index] || (part.startsWith('{') && segments[index] !== ''));
}
