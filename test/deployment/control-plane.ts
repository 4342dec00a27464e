import { execFileSync, spawn } from 'node:child_process';
import { createHash, generateKeyPairSync, randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { environmentVariables } from '#libs/platform/src/config/environment';
import { freePort } from '#libs/testing/src/engines/free-port';
import { WatchedDirectory } from '#libs/testing/src/engines/watched-directory';
import { WatchedProcess } from '#libs/testing/src/engines/watched-process';
import { givenProgram } from '#libs/testing/src/given-program';
import { ROOT } from '#libs/testing/src/process';

const SOURCES = join(ROOT, 'test/deployment/control-plane');
const BUILT = join(homedir(), '.cache/gatehouse');
const kubectl = givenProgram('kubectl');
const NODES = ['node-1', 'node-2', 'node-3'];
const DISKS = 3;

/** How a command of kubectl, or a script of such, ended. */
export interface Outcome {
  readonly code: number | null;
  /** Both of what it printed. */
  readonly text: string;
}

/**
 * The control plane of Kubernetes itself, with three nodes that are simulated: a pod that is scheduled there says that it runs and is ready, a pod of a Job that it is
 * done. No image is ever asked for.
 */
export class ControlPlane {
  private constructor(
    private readonly directory: WatchedDirectory,
    private readonly processes: readonly WatchedProcess[],
    private readonly kubeconfig: string,
  ) {}

  /** Whether there is what it takes; otherwise the run says what is missing, and `ENGINES=required` refuses that. */
  static get isPossible(): boolean {
    return kubectl !== null && (existsSync(program()) || givenProgram('go') !== null);
  }

  static async start(): Promise<ControlPlane> {
    const program = built();
    const directory = WatchedDirectory.create('control-plane');
    const [clients, members, api, nodes] = [await freePort(), await freePort(), await freePort(), await freePort()];
    const path = (name: string): string => join(directory.path, name);
    const token = randomBytes(16).toString('hex');
    const { privateKey, publicKey } = generateKeyPairSync('rsa', {
      modulusLength: 2048,
      privateKeyEncoding: { type: 'pkcs1', format: 'pem' },
      publicKeyEncoding: { type: 'spki', format: 'pem' },
    });
    writeFileSync(path('accounts.key'), privateKey, { mode: 0o600 });
    writeFileSync(path('accounts.pub'), publicKey);
    writeFileSync(path('tokens.csv'), `${token},operator,operator,system:masters\n`, { mode: 0o600 });
    writeFileSync(path('kubeconfig'), kubeconfig(`https://127.0.0.1:${api}`, token), { mode: 0o600 });

    const processes: WatchedProcess[] = [];
    const plane = new ControlPlane(directory, processes, path('kubeconfig'));
    const start = async (name: string, args: readonly string[], isReady: () => Promise<boolean> = async () => true): Promise<void> => {
      processes.push(await WatchedProcess.start(directory, { name, command: [program, name, ...args], variables: { HOME: directory.path }, isReady }));
    };
    const asOperator = [`--kubeconfig=${path('kubeconfig')}`];
    try {
      await start('store', [path('etcd'), `http://127.0.0.1:${clients}`, `http://127.0.0.1:${members}`]);
      await start(
        'api',
        [
          `--etcd-servers=http://127.0.0.1:${clients}`,
          '--bind-address=127.0.0.1',
          `--secure-port=${api}`,
          `--cert-dir=${path('certificates')}`,
          '--authorization-mode=RBAC',
          `--token-auth-file=${path('tokens.csv')}`,
          '--service-account-issuer=https://kubernetes.default.svc',
          `--service-account-key-file=${path('accounts.pub')}`,
          `--service-account-signing-key-file=${path('accounts.key')}`,
          '--service-cluster-ip-range=10.96.0.0/16',
          '--endpoint-reconciler-type=none',
        ],
        async () => (await plane.kubectl('get', '--raw', '/readyz')).code === 0,
      );
      const alone = [...asOperator, '--leader-elect=false', '--secure-port=0'];
      await start('controllers', [...alone, `--service-account-private-key-file=${path('accounts.key')}`, '--concurrent-deployment-syncs=5']);
      await start('scheduler', alone);
      await start('nodes', [...asOperator, '--manage-all-nodes=true', `--server-address=127.0.0.1:${nodes}`, '--node-lease-duration-seconds=40']);
      await plane.furnish();
      return plane;
    } catch (error) {
      await plane.close();
      throw error;
    }
  }

  kubectl(...args: readonly string[]): Promise<Outcome> {
    return this.run(kubectl!, args);
  }

  /** As an operator types it, in a folder; it ends at the first command that fails. */
  script(text: string, folder: string): Promise<Outcome> {
    return this.run('bash', ['--norc', '-euo', 'pipefail', '-c', text], { folder });
  }

  /** What there is of a kind, in the namespace of Gatehouse. */
  async list<Item>(kind: string, ...args: readonly string[]): Promise<readonly Item[]> {
    const { code, text } = await this.kubectl('--namespace=gatehouse', 'get', kind, '--output=json', ...args);
    if (code !== 0) throw new Error(`kubectl get ${kind}: ${text}`);
    return (JSON.parse(text) as { readonly items: readonly Item[] }).items;
  }

  /** The fewest replicas of each Deployment that were available at any moment of what is done. */
  async fewestAvailable(done: () => Promise<void>): Promise<Readonly<Record<string, number>>> {
    const columns = 'custom-columns=NAME:.metadata.name,AVAILABLE:.status.availableReplicas';
    const watching = spawn(kubectl!, ['--namespace=gatehouse', 'get', 'deployments', '--watch', '--no-headers', `--output=${columns}`], {
      env: this.environment,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let text = '';
    watching.stdout.setEncoding('utf8').on('data', (part: string) => (text += part));
    try {
      await done();
    } finally {
      watching.kill();
    }
    const fewest: Record<string, number> = {};
    for (const [, name, available] of text.matchAll(/^(\S+)\s+(\S+)\s*$/gm)) fewest[name!] = Math.min(fewest[name!] ?? Infinity, Number(available) || 0);
    return fewest;
  }

  async close(): Promise<void> {
    for (const process of [...this.processes].reverse()) await process.kill();
    this.directory.remove();
  }

  /** Nodes in a zone each, and disks, which a control plane alone does not make. */
  private async furnish(): Promise<void> {
    const nodes = NODES.map((name) => ({
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name, labels: { 'kubernetes.io/hostname': name, 'kubernetes.io/os': 'linux', 'topology.kubernetes.io/zone': `zone-of-${name}` } },
      status: { capacity: ROOM, allocatable: ROOM },
    }));
    const storage = {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: { name: 'simulated', annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
      provisioner: 'kubernetes.io/no-provisioner',
    };
    const disks = Array.from({ length: DISKS }, (_, index) => ({
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name: `disk-${index}` },
      spec: { capacity: { storage: '10Gi' }, accessModes: ['ReadWriteOnce'], storageClassName: 'simulated', hostPath: { path: `/disk-${index}` } },
    }));
    const input = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [...nodes, storage, ...disks] });
    const { code, text } = await this.run(kubectl!, ['apply', '--filename=-'], { input });
    if (code !== 0) throw new Error(text);
    const ready = await this.kubectl('wait', '--for=condition=Ready', 'node', '--all', '--timeout=60s');
    if (ready.code !== 0) throw new Error(`${ready.text}${readFileSync(this.processes.at(-1)!.log, 'utf8').slice(-4_000)}`);
  }

  private run(program: string, args: readonly string[], { folder = ROOT, input = '' } = {}): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      const child = spawn(program, args, { cwd: folder, env: this.environment });
      let text = '';
      for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (part: string) => (text += part));
      child.once('error', reject).once('close', (code) => resolve({ code, text }));
      child.stdin.end(input);
    });
  }

  private get environment(): Readonly<Record<string, string>> {
    return { PATH: [dirname(kubectl!), environmentVariables()['PATH']].join(delimiter), HOME: this.directory.path, KUBECONFIG: this.kubeconfig };
  }
}

const ROOM = { cpu: '16', memory: '32Gi', pods: '110' };

/** The program, built once for each state of its sources; that takes minutes and needs Go. */
function built(): string {
  const path = program();
  if (existsSync(path)) return path;
  const unfinished = `${path}.${process.pid}`;
  mkdirSync(BUILT, { recursive: true });
  execFileSync(givenProgram('go')!, ['build', '-trimpath', '-ldflags=-s -w', '-o', unfinished, '.'], { cwd: SOURCES, stdio: ['ignore', 'inherit', 'inherit'] });
  renameSync(unfinished, path);
  return path;
}

function program(): string {
  const hash = createHash('sha256');
  for (const file of ['main.go', 'go.mod', 'go.sum']) hash.update(readFileSync(join(SOURCES, file)));
  return join(BUILT, `control-plane-${hash.digest('hex').slice(0, 16)}`);
}

function kubeconfig(server: string, token: string): string {
  const named = { cluster: 'here', user: 'operator' };
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    // It makes its own certificate at its start, and listens on this machine alone.
    clusters: [{ name: named.cluster, cluster: { server, 'insecure-skip-tls-verify': true } }],
    users: [{ name: named.user, user: { token } }],
    contexts: [{ name: 'here', context: named }],
    'current-context': 'here',
  });
}
