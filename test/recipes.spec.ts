import { readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { SERVICES } from '#libs/contracts/src/operation';
import { ROOT } from '#libs/testing/src/process';

const textOf = (file: string): string => readFileSync(join(ROOT, file), 'utf8');
const asOneLine = (text: string): string => text.replaceAll(/\s+/g, ' ').trim();

const recipes = textOf('docs/recipes.md');
const linked = (path: string): string => posix.join('docs', path);

/** The code of recipes, each with the file that was linked last before it. */
function quotations(): readonly (readonly [file: string, code: string])[] {
  const [first, ...rest] = recipes.split(/^```ts\n/m);
  let file: string | undefined;
  const note = (text: string): void => void (file = [...text.matchAll(/\]\(([^)]+\.ts)\)/g)].at(-1)?.[1] ?? file);
  note(first!);
  return rest.map((part) => {
    const [code, after] = part.split(/^```\n/m);
    const quotation = [linked(file!), asOneLine(code!)] as const;
    note(after!);
    return quotation;
  });
}

describe('the recipes', () => {
  it.each(quotations())('show what %s has: %s', (file, code) => {
    expect(asOneLine(textOf(file))).toContain(code);
  });

  it('link files that are there', () => {
    for (const [, file] of recipes.matchAll(/\]\(([^)#]+)\)/g)) expect(textOf(linked(file!))).not.toBe('');
  });
});

describe.each(SERVICES)('the service %s', (service) => {
  it('is an app that can be started alone, and tells what it is', () => {
    expect(textOf(`apps/${service}/src/main.ts`)).toContain(`./${service}.app.ts`);
    expect(textOf(`apps/${service}/README.md`)).toMatch(/^# /);
  });

  it('is part of the suite', () => {
    expect(textOf('apps/suite/src/suite.ts')).toContain(`'#apps/${service}/src/${service}.app'`);
  });

  it('is part of a cluster of Kubernetes, where an alert tells that it is absent', () => {
    expect(textOf(`k8s/base/${service}.yaml`)).toContain(`args: [${service}]`);
    expect(textOf('k8s/base/kustomization.yaml')).toContain(`  - ${service}.yaml\n`);
    expect(textOf('k8s/base/gatehouse.rules.yaml')).toContain(`absent(gatehouse_process_start_seconds{app="${service}"})`);
  });

  it('is part of a cluster of Compose, where the gateway waits for it', () => {
    const compose = textOf('docker-compose.yml');
    expect(compose).toContain(`    command: [${service}]\n`);
    expect(compose).toContain(`      ${service}: { condition: service_healthy }\n`);
  });
});
