import { fileURLToPath } from 'node:url';

/**
 * The file that a thread or a child process begins with: it lies beside the one that begins it (`url`). Node cannot read sources, which specs alone run: of those it is what was
 * compiled of them.
 */
export function programBeside(url: string, name: string): string {
  const compiled = url.replace(/\/(apps|libs)\/([^?]*)\.ts$/, '/dist/$1/$2.js');
  return fileURLToPath(new URL(`${name}.js`, compiled));
}
