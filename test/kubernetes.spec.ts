import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { ControlPlane } from './deployment/control-plane.ts';
import { SERVICES } from '#libs/contracts/src/operation';
import { productionFiles, type PodSpec } from '#libs/testing/src/deployment/manifests';

interface Pod {
  readonly metadata: { readonly name: string; readonly uid: string; readonly labels: Readonly<Record<string, string>>; readonly deletionTimestamp?: string };
  readonly spec: PodSpec & { readonly nodeName?: string };
  readonly status: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
}

interface Generated {
  readonly metadata: { readonly name: string; readonly generation: number };
}

interface Deployment extends Generated {
  readonly spec: { readonly replicas: number };
  readonly status: { readonly observedGeneration: number; readonly availableReplicas?: number; readonly updatedReplicas?: number; readonly replicas?: number };
}

interface Job {
  readonly metadata: { readonly name: string; readonly uid: string };
  readonly spec: { readonly template: { readonly spec: PodSpec } };
  readonly status: { readonly completionTime?: string };
}

const APPS = ['gateway', ...SERVICES].sort();
const OPERATIONS = readFileSync('docs/operations.md', 'utf8');
/** What an operator is told to type for another version. */
const UPGRADE = /^## Changing the version\n[^#]*?```sh\n(.*?)```/ms.exec(OPERATIONS)![1]!;
const SCALE = /`(kubectl scale deploy\/notifications --replicas=(\d+))`/.exec(OPERATIONS)!;

/** Several pods come and go in each step. */
const CLUSTER_TIMEOUT_MS = 600_000;
/** The control plane is built where it is started for the first time: a quarter of an hour of two processors that do other work as well. */
const BUILT_TIMEOUT_MS = 1_800_000;

const describeGiven = ControlPlane.isPossible ? describe : describe.skip;

describeGiven.each(['dev', 'production'] as const)('the overlay of %s, on a control plane', (overlay) => {
  const root = mkdtempSync(join(tmpdir(), 'gatehouse-kubernetes-'));
  const folder = join(root, 'k8s/overlays', overlay);
  let plane: ControlPlane;

  beforeAll(async () => {
    cpSync('k8s', join(root, 'k8s'), { recursive: true });
    if (overlay === 'production') for (const [name, text] of Object.entries(productionFiles())) writeFileSync(join(folder, name), text);
    plane = await ControlPlane.start();
  }, BUILT_TIMEOUT_MS);
  afterAll(async () => {
    await plane?.close();
    rmSync(root, { recursive: true });
  });

  const edit = (file: string, change: (text: string) => string): void => {
    const before = readFileSync(join(folder, file), 'utf8');
    const after = change(before);
    expect(after).not.toBe(before);
    writeFileSync(join(folder, file), after);
  };
  const release = (image: string): void =>
    overlay === 'dev'
      ? edit('kustomization.yaml', (text) => text.replace(/newTag: \S+/, `newTag: ${image}`))
      : edit('cluster.env', (text) => text.replace(/^(IMAGE=.*):.*$/m, `$1:${image}`));
  const succeeds = async (script: string): Promise<string> => {
    const outcome = await plane.script(script, root);
    if (outcome.code !== 0) throw new Error(`${script}\n${outcome.text}`);
    return outcome.text;
  };
  const apply = (): Promise<string> => succeeds(`kubectl apply -k k8s/overlays/${overlay}`);
  const upgrade = (): Promise<string> => succeeds(UPGRADE.replace('k8s/overlays/production', `k8s/overlays/${overlay}`));

  const podsOf = async (app: string): Promise<readonly Pod[]> => {
    const pods = await plane.list<Pod>('pods', `--selector=app.kubernetes.io/name=${app}`);
    return pods.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  };
  const allPods = async (): Promise<readonly Pod[]> => (await Promise.all(APPS.map(podsOf))).flat();
  /** Until each app has as many pods as it wants, all of them of the last template, and no other. */
  const settled = async (wanted: (deployment: Deployment) => number = () => 2): Promise<void> => {
    for (const deadline = Date.now() + 180_000; ; await pause(500)) {
      const deployments = await plane.list<Deployment>('deployments');
      const isSettled = deployments.every((deployment) => {
        const { metadata, spec, status } = deployment;
        const counts = [spec.replicas, status.replicas, status.updatedReplicas, status.availableReplicas];
        return status.observedGeneration === metadata.generation && counts.every((count) => count === wanted(deployment));
      });
      if (isSettled) return expect(deployments.map(({ metadata }) => metadata.name)).toEqual(APPS);
      if (Date.now() > deadline)
        throw new Error(`not settled: ${JSON.stringify(deployments.map(({ metadata, spec, status }) => [metadata.name, spec.replicas, status]))}`);
    }
  };
  const imageOf = ({ containers }: PodSpec): string => containers[0]!.image;
  const nodesOf = (pods: readonly Pod[]): ReadonlySet<string> => new Set(pods.map(({ spec }) => spec.nodeName!));

  it(
    'is installed by one command: two ready pods of each app, on nodes of their own',
    async () => {
      await apply();
      await settled();
      for (const app of APPS) expect(nodesOf(await podsOf(app)).size).toBe(2);
      if (overlay === 'dev') await succeeds('kubectl -n gatehouse rollout status statefulset/eventstore statefulset/mongodb statefulset/kafka --timeout=120s');
      expect(await plane.list('jobs')).toEqual([]);
    },
    CLUSTER_TIMEOUT_MS,
  );

  it(
    'is applied again without anything happening',
    async () => {
      // What kubectl says of an object may be `configured` where nothing was; its generation grows with every change.
      const generations = async () =>
        (await plane.list<Generated>('deployments,statefulsets,cronjobs,networkpolicies,ingresses')).map(({ metadata }) => [
          metadata.name,
          metadata.generation,
        ]);
      const pods = async () => (await allPods()).map(({ metadata }) => metadata.uid);
      const before = [await generations(), await pods()];
      await apply();
      expect([await generations(), await pods()]).toEqual(before);
    },
    CLUSTER_TIMEOUT_MS,
  );

  it(
    'takes a changed setting: every pod is replaced, and at no moment are there fewer than before',
    async () => {
      const before = new Set((await allPods()).map(({ metadata }) => metadata.uid));
      edit('settings.env', (text) => `${text}LOG_LEVEL=debug\n`);
      const fewest = await plane.fewestAvailable(async () => {
        await apply();
        await settled();
      });
      expect(fewest).toEqual(Object.fromEntries(APPS.map((app) => [app, 2])));
      const pods = await allPods();
      expect(pods.filter(({ metadata }) => before.has(metadata.uid))).toEqual([]);
      for (const { spec } of pods) {
        const { code, text } = await plane.kubectl(
          '--namespace=gatehouse',
          'get',
          'configmap',
          spec.containers[0]!.envFrom![0]!.configMapRef!.name,
          '--output=jsonpath={.data.LOG_LEVEL}',
        );
        expect({ code, text }).toEqual({ code: 0, text: 'debug' });
      }
    },
    CLUSTER_TIMEOUT_MS,
  );

  it.each(['0.2.0', '0.3.0'])(
    'is upgraded to %s as the operations manual says: views first, then pods one by one',
    async (image) => {
      release(image);
      const fewest = await plane.fewestAvailable(async () => {
        await upgrade();
        await settled();
      });
      expect(fewest).toEqual(Object.fromEntries(APPS.map((app) => [app, 2])));
      const [job, ...others] = await plane.list<Job>('jobs');
      expect(others).toEqual([]);
      expect(job).toMatchObject({ metadata: { name: 'views-fill' } });
      expect(imageOf(job!.spec.template.spec)).toMatch(new RegExp(`:${image}$`));
      const pods = await allPods();
      for (const { spec } of pods) expect(imageOf(spec)).toMatch(new RegExp(`:${image}$`));
      const filled = Date.parse(job!.status.completionTime!);
      const sets = await plane.list<{
        readonly metadata: { readonly name: string; readonly creationTimestamp: string };
        readonly spec: { readonly replicas: number };
      }>('replicasets');
      const present = sets.filter(({ spec }) => spec.replicas > 0);
      expect(present).toHaveLength(APPS.length);
      for (const { metadata } of present) expect(Date.parse(metadata.creationTimestamp)).toBeGreaterThanOrEqual(filled);
    },
    CLUSTER_TIMEOUT_MS,
  );

  it(
    'takes a setting that changes after an upgrade, whose job is still there',
    async () => {
      expect(await plane.list('jobs')).toHaveLength(1);
      edit('settings.env', (text) => text.replace('LOG_LEVEL=debug', 'LOG_LEVEL=warn'));
      await apply();
      await settled();
    },
    CLUSTER_TIMEOUT_MS,
  );

  it(
    'is scaled by hand, spread over the nodes, and stays so when it is applied again; its autoscaler brings back what is missing',
    async () => {
      const [, command, replicas] = SCALE;
      const wanted = ({ metadata }: Deployment): number => (metadata.name === 'notifications' ? Number(replicas) : 2);
      await succeeds(command!.replace('kubectl', 'kubectl -n gatehouse'));
      await settled(wanted);
      expect(nodesOf(await podsOf('notifications')).size).toBe(3);
      await apply();
      await settled(wanted);
      await succeeds('kubectl -n gatehouse scale deploy/notifications --replicas=1');
      await settled();
    },
    CLUSTER_TIMEOUT_MS,
  );

  it(
    'leaves a node that is drained, one pod of an app at a time, and no app without a pod where there is no other node',
    async () => {
      const node = (await podsOf('gateway'))[0]!.spec.nodeName!;
      const fewest = await plane.fewestAvailable(async () => {
        await succeeds(`kubectl drain ${node} --ignore-daemonsets --delete-emptydir-data --timeout=120s`);
        await settled();
      });
      for (const app of APPS) expect(fewest[app]).toBeGreaterThanOrEqual(1);
      expect([...nodesOf(await allPods())]).not.toContain(node);

      // Nowhere to go: the last pod of each app is not given up.
      await succeeds('kubectl get nodes -o name | xargs kubectl cordon');
      const left = [...nodesOf(await allPods())];
      const refusals: string[] = [];
      const fewestThen = await plane.fewestAvailable(async () => {
        for (const each of left) refusals.push((await plane.kubectl('drain', each, '--ignore-daemonsets', '--delete-emptydir-data', '--timeout=15s')).text);
      });
      expect(refusals.join('\n')).toContain("would violate the pod's disruption budget");
      for (const app of APPS) expect({ app, fewest: fewestThen[app] }).toEqual({ app, fewest: 1 });

      await succeeds('kubectl get nodes -o name | xargs kubectl uncordon');
      await settled();
    },
    CLUSTER_TIMEOUT_MS,
  );
});
