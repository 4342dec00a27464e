import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { StartRefused } from '#libs/platform/src/start-refused';
import { givenAuthority } from '../certificates.ts';
import { findProgram } from '../given-program.ts';
import { ROOT } from '../process.ts';
import type { AppContainer, Asked, Deployed, DeploymentNeeds } from './app-container.ts';
import { imageOfDockerfile } from './image.ts';
import { manifestsIn, productionFiles, renderedProduction, variablesOf, workloadsIn, type Container, type Manifest, type PodSpec } from './manifests.ts';

const OVERLAY = 'k8s/overlays/production';
/** A single broker cannot hold three copies. */
const ONE_BROKER = { KAFKA_REPLICATION: '1' };

/**
 * What the manifests of production start, rendered with files that an operator would have written: they stay in the folder. Engines show a certificate for this
 * machine, signed by an authority of their own.
 * @throws StartRefused where there is nothing to render them with
 */
export async function deployedToProduction({ folder, ports, settings, secrets }: DeploymentNeeds): Promise<Deployed> {
  const kustomize = findProgram('kustomize', 'kubectl');
  if (kustomize === null) throw new StartRefused(`kubectl or kustomize is needed to render ${OVERLAY}; .ci/deployment-tools brings it.`);
  mkdirSync(folder, { recursive: true });
  const authority = await givenAuthority('Authority of the engines');
  const { cert, key } = await authority.certify('engines', ['localhost', '127.0.0.1']);
  const tls = { ca: join(folder, 'engines-ca.crt'), cert: join(folder, 'engines.crt'), key: join(folder, 'engines.key') };
  writeFileSync(tls.cert, cert);
  writeFileSync(tls.key, key, { mode: 0o600 });

  const examples = productionFiles();
  const files = {
    'cluster.env': withLines(examples['cluster.env']!, {
      EVENTSTORE_HOSTS: `localhost:${ports.eventstore}`,
      MONGODB_HOSTS: `localhost:${ports.mongodb}`,
      KAFKA_BROKERS: `localhost:${ports.kafka}`,
    }),
    'secrets.env': withLines(
      examples['secrets.env']!.replaceAll(/^(\w+)=p+$/gm, (_line, name: string) => `${name}=${randomBytes(32).toString('base64url')}`),
      {
        MASTER_KEYS: randomBytes(32).toString('base64'),
        ...secrets,
      },
    ),
    'settings.env': withLines(readFileSync(join(ROOT, OVERLAY, 'settings.env'), 'utf8'), { ...ONE_BROKER, ...settings }),
    'engines-ca.crt': authority.ca,
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text, { mode: 0o600 });
  const { failed, text } = renderedProduction(kustomize, files);
  if (failed) throw new Error(`${OVERLAY} does not render: ${text}`);

  const manifests = manifestsIn(text);
  const containers = workloadsIn(manifests).map(({ of, pod }) => ({ kind: of.kind, container: containerOf(of, pod, { manifests, folder }) }));
  const ofKind = (wanted: string): readonly AppContainer[] => containers.flatMap(({ kind, container }) => (kind === wanted ? [container] : []));
  return { apps: ofKind('Deployment'), jobs: ofKind('CronJob'), tls };
}

/** A file of settings with other values for some of its lines, and with lines for what it does not have. */
function withLines(text: string, values: Readonly<Record<string, string>>): string {
  const rest = text.split('\n').filter((line) => !Object.keys(values).some((name) => line.startsWith(`${name}=`)));
  return `${rest.join('\n').trimEnd()}\n${Object.entries(values)
    .map(([name, value]) => `${name}=${value}\n`)
    .join('')}`;
}

interface Rendered {
  readonly manifests: readonly Manifest[];
  /** Where the files of its maps are put. */
  readonly folder: string;
}

function containerOf(of: Manifest, pod: PodSpec, { manifests, folder }: Rendered): AppContainer {
  const [container] = pod.containers as readonly [Container];
  const files: Record<string, string> = {};
  const writable: Record<string, string> = {};
  for (const { name, mountPath } of container.volumeMounts ?? []) {
    const { emptyDir, configMap } = pod.volumes!.find((volume) => volume.name === name)!;
    if (emptyDir !== undefined) writable[mountPath] = sizeOf(emptyDir.sizeLimit);
    else if (configMap !== undefined) files[mountPath] = written(manifests, configMap.name, folder);
    else throw new Error(`${of.metadata.name} mounts ${name}, of a kind that no process can be given.`);
  }
  const { runAsUser, runAsGroup } = pod.securityContext as { readonly runAsUser: number; readonly runAsGroup: number };
  return {
    name: of.metadata.name,
    args: container.args!,
    variables: { ...imageOfDockerfile().variables, ...variablesOf(container, manifests) },
    user: `${runAsUser}:${runAsGroup}`,
    files,
    writable,
    asked: askedOf(of, container),
  };
}

/** Probes name the ports of their container; the annotations that a Prometheus follows say the number. */
function askedOf(of: Manifest, { ports = [], startupProbe, readinessProbe, livenessProbe }: Container): AppContainer['asked'] {
  const probes = Object.entries({ startupProbe, readinessProbe, livenessProbe }).flatMap(([probe, asked]): readonly (readonly [string, Asked])[] => {
    if (asked === undefined) return [];
    const { path, port } = asked.httpGet;
    const listening = ports.find(({ name }) => name === port);
    if (listening === undefined) throw new Error(`The ${probe} of ${of.metadata.name} asks the port ${port}, which its container does not have.`);
    return [[probe, { path, port: listening.containerPort }]];
  });
  const { 'prometheus.io/path': path, 'prometheus.io/port': port } = of.spec.template?.metadata.annotations ?? {};
  return Object.fromEntries([...probes, ...(path === undefined ? [] : [['metrics', { path, port: Number(port) }] as const])]);
}

function written(manifests: readonly Manifest[], map: string, folder: string): string {
  const { data } = manifests.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === map)!;
  const place = join(folder, map);
  mkdirSync(place, { recursive: true });
  for (const [name, text] of Object.entries(data!)) writeFileSync(join(place, name), text);
  return place;
}

/** As `mount` is told it. */
function sizeOf(limit = '50%'): string {
  return limit.replace(/^(\d+)Mi$/, '$1m').replace(/^(\d+)Gi$/, '$1g');
}
