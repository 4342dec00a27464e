import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { ROOT } from '../process.ts';

/** Of each kind what the specs look at. */
export interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly labels?: Labels; readonly annotations?: Labels };
  readonly automountServiceAccountToken?: boolean;
  readonly data?: Readonly<Record<string, string>>;
  readonly spec: {
    readonly replicas?: number;
    readonly selector?: Selector & Labels;
    readonly template?: Template;
    readonly jobTemplate?: { readonly spec: { readonly template: Template } };
    readonly suspend?: boolean;
    readonly strategy?: { readonly type: string; readonly rollingUpdate?: { readonly maxUnavailable: number } };
    readonly ports?: readonly { readonly port: number; readonly targetPort: string }[];
    readonly podSelector?: Selector;
    readonly ingress?: readonly { readonly from: readonly Peer[]; readonly ports: readonly PolicyPort[] }[];
    readonly egress?: readonly { readonly to: readonly Peer[]; readonly ports: readonly PolicyPort[] }[];
    readonly scaleTargetRef?: { readonly kind: string; readonly name: string };
    readonly minReplicas?: number;
    readonly rules?: readonly { readonly host?: string; readonly http: { readonly paths: readonly { readonly backend: Backend }[] } }[];
    readonly tls?: readonly object[];
  };
}

interface Template {
  readonly metadata: { readonly labels: Labels; readonly annotations?: Labels };
  readonly spec: PodSpec;
}

type Labels = Readonly<Record<string, string>>;

interface Selector {
  readonly matchLabels?: Labels;
  readonly matchExpressions?: readonly { readonly key: string; readonly operator: 'In'; readonly values: readonly string[] }[];
}

interface Peer {
  readonly podSelector?: Selector;
  readonly namespaceSelector?: Selector;
  readonly ipBlock?: { readonly cidr: string };
}

interface PolicyPort {
  readonly protocol: string;
  readonly port: number;
}

interface Backend {
  readonly service: { readonly name: string; readonly port: { readonly name: string } };
}

export interface PodSpec {
  readonly serviceAccountName?: string;
  readonly automountServiceAccountToken?: boolean;
  readonly terminationGracePeriodSeconds?: number;
  readonly hostNetwork?: boolean;
  readonly hostPID?: boolean;
  readonly hostIPC?: boolean;
  readonly securityContext?: SecurityContext;
  readonly containers: readonly Container[];
  readonly initContainers?: readonly Container[];
  readonly volumes?: readonly Volume[];
}

type Volume = Readonly<Record<string, unknown>> & {
  readonly name: string;
  readonly emptyDir?: { readonly sizeLimit?: string };
  readonly configMap?: { readonly name: string };
};

export interface SecurityContext {
  readonly runAsNonRoot?: boolean;
  readonly runAsUser?: number;
  readonly privileged?: boolean;
  readonly allowPrivilegeEscalation?: boolean;
  readonly readOnlyRootFilesystem?: boolean;
  readonly capabilities?: { readonly drop?: readonly string[]; readonly add?: readonly string[] };
  readonly seccompProfile?: { readonly type: string };
}

export interface Container {
  readonly name: string;
  readonly image: string;
  readonly args?: readonly string[];
  readonly ports?: readonly { readonly name?: string; readonly containerPort: number; readonly hostPort?: number }[];
  readonly env?: readonly EnvironmentVariable[];
  readonly envFrom?: readonly { readonly configMapRef?: { readonly name: string }; readonly secretRef?: { readonly name: string } }[];
  readonly lifecycle?: { readonly preStop: { readonly sleep: { readonly seconds: number } } };
  readonly securityContext?: SecurityContext;
  readonly resources?: { readonly requests?: object; readonly limits?: object };
  readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string; readonly readOnly?: boolean }[];
  readonly startupProbe?: Probe;
  readonly readinessProbe?: Probe;
  readonly livenessProbe?: Probe;
}

interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string };
}

interface EnvironmentVariable {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: { readonly secretKeyRef: { readonly name: string; readonly key: string; readonly optional?: boolean } };
}

export interface Rendering {
  readonly failed: boolean;
  /** What was rendered, or why it was not. */
  readonly text: string;
}

/** Renders a folder by kustomize, which kubectl brings. */
export function rendered(program: string, folder: string): Rendering {
  const args = program.endsWith('kubectl') ? ['kustomize', folder] : ['build', folder];
  const { status, stdout, stderr } = spawnSync(program, args, { cwd: ROOT, encoding: 'utf8' });
  return status === 0 ? { failed: false, text: stdout } : { failed: true, text: stderr };
}

/** Renders the overlay of production as an operator would have filled it in; null in place of a file: it is missing. */
export function renderedProduction(program: string, files: Readonly<Record<string, string | null>> = {}): Rendering {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-k8s-'));
  try {
    cpSync(join(ROOT, 'k8s'), folder, { recursive: true });
    const overlay = join(folder, 'overlays/production');
    for (const [name, text] of Object.entries({ ...productionFiles(), ...files })) {
      rmSync(join(overlay, name), { force: true });
      if (text !== null) writeFileSync(join(overlay, name), text);
    }
    return rendered(program, overlay);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The examples with their lines uncommented, and something for each secret. */
export function productionFiles(): Readonly<Record<string, string>> {
  const example = (name: string) => readFileSync(join(ROOT, `k8s/overlays/production/${name}.example`), 'utf8').replaceAll(/^#(?=[A-Z_]+=)/gm, '');
  return {
    'cluster.env': example('cluster.env'),
    'secrets.env': example('secrets.env')
      .replace('MASTER_KEYS=', `MASTER_KEYS=${Buffer.alloc(32, 'k').toString('base64')}`)
      .replaceAll(/^(\w+_KEY|\w+_PASSWORD)=$/gm, `$1=${'p'.repeat(40)}`),
    'engines-ca.crt': 'a certificate\n',
  };
}

export function manifestsIn(text: string): readonly Manifest[] {
  return parseAllDocuments(text).map((document) => document.toJS() as Manifest);
}

/** Everything that makes pods, with what its pods are. */
export function workloadsIn(manifests: readonly Manifest[]): readonly { readonly of: Manifest; readonly labels: Labels; readonly pod: PodSpec }[] {
  return manifests.flatMap((of) => {
    const template = of.spec?.template ?? of.spec?.jobTemplate?.spec.template;
    return template === undefined ? [] : [{ of, labels: template.metadata.labels, pod: template.spec }];
  });
}

export function selects({ matchLabels = {}, matchExpressions = [] }: Selector, labels: Labels): boolean {
  return (
    Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
    matchExpressions.every(({ key, values }) => values.includes(labels[key] ?? ''))
  );
}

/** What a container is told, as the kubelet puts it together: maps first, later ones over earlier ones, then single variables, which may name single ones before them. */
export function variablesOf({ env = [], envFrom = [] }: Container, manifests: readonly Manifest[]): Readonly<Record<string, string>> {
  const dataOf = (kind: string, name: string): Readonly<Record<string, string>> => {
    const { data = {} } = manifests.find((each) => each.kind === kind && each.metadata.name === name) ?? {};
    return kind === 'ConfigMap' ? data : Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value, 'base64').toString()]));
  };
  const single: Record<string, string> = {};
  for (const { name, value, valueFrom } of env) {
    const { name: secret, key, optional } = valueFrom?.secretKeyRef ?? {};
    if (optional === true && !(key! in dataOf('Secret', secret!))) continue;
    const text = secret === undefined ? (value ?? '') : (dataOf('Secret', secret)[key!] ?? '');
    single[name] = text.replaceAll(/\$\((\w+)\)/g, (whole, other: string) => single[other] ?? whole);
  }
  const fromMaps = envFrom.map(({ configMapRef, secretRef }) => dataOf(configMapRef === undefined ? 'Secret' : 'ConfigMap', (configMapRef ?? secretRef!).name));
  return { ...(Object.assign({}, ...fromMaps) as Record<string, string>), ...single };
}
