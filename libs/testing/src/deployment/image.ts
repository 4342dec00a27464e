import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../process.ts';

/** What the image adds to whatever a container is started with. */
export interface Image {
  /** The words before the arguments of a container. */
  readonly entrypoint: readonly string[];
  /** `user:group`, by number. */
  readonly user: string;
  readonly variables: Readonly<Record<string, string>>;
}

export function imageOfDockerfile(): Image {
  const [, last] = /^FROM \$\{BASE\}\n(?<last>(?:.|\n)*)/m.exec(readFileSync(join(ROOT, 'Dockerfile'), 'utf8').split(/^FROM packages AS production$/m)[1]!)!;
  const said = (word: string): string => new RegExp(`^${word} (.+)$`, 'm').exec(last!)![1]!;
  return {
    entrypoint: JSON.parse(said('ENTRYPOINT')) as string[],
    user: said('USER'),
    variables: Object.fromEntries(
      said('ENV')
        .split(' ')
        .map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]),
    ),
  };
}

/** What Node is told in the image, and by `npm start`: what is tried and measured without either runs as they do. */
export function nodeFlags(): readonly string[] {
  return imageOfDockerfile().variables['NODE_OPTIONS']!.split(' ');
}
