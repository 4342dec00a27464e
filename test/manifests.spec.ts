import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { milliseconds } from '#libs/platform/src/config/kinds';
import { readSettings, settingsOf } from '#libs/platform/src/config/setting';
import { EngineSettings, KafkaSettings, PlatformSettings, SETTINGS_CLASSES, TransportSettings } from '#libs/platform/src/config/settings';
import { requireSettings } from '#libs/runtime/src/required-settings';
import { givenAuthority } from '#libs/testing/src/certificates';
import {
  manifestsIn,
  productionFiles,
  rendered,
  renderedProduction,
  selects,
  variablesOf,
  workloadsIn,
  type Manifest,
} from '#libs/testing/src/deployment/manifests';
import { givenProgram } from '#libs/testing/src/given-program';
import { eventstore } from '#libs/testing/src/engines/eventstore';
import { kafka } from '#libs/testing/src/engines/kafka';
import { mongodb } from '#libs/testing/src/engines/mongodb';
import { secretsUsed, settingsUsed } from './deployment/secrets-used.ts';
import { refusedByRestricted } from './deployment/pod-security.ts';

const kustomize = givenProgram('kustomize', 'kubectl');
const validate = givenProgram('kubernetes-validate');
const describeRendered = kustomize === null ? describe.skip : describe;
const itValidated = validate === null ? it.skip : it;

/** The oldest that the base is written for, and the newest whose schemas are at hand. */
const KUBERNETES = ['1.30.0', '1.37.0'];
/** Where pods find the certificates that engines are signed by. */
const MOUNTED_CA = '/etc/gatehouse/engines-ca.crt';
/** What Node itself reads. */
const OF_NODE = ['NODE_OPTIONS', 'NODE_EXTRA_CA_CERTS'];

const settings = SETTINGS_CLASSES.flatMap((type) => settingsOf(type));
const secrets = new Set(settings.filter(({ secret }) => secret).map(({ name }) => name));
const overlays = ['dev', 'production'] as const;

const texts = new Map(
  kustomize === null
    ? []
    : overlays.map((overlay) => [overlay, (overlay === 'dev' ? rendered(kustomize, 'k8s/overlays/dev') : renderedProduction(kustomize)).text] as const),
);

describeRendered.each(overlays)('the manifests of %s', (overlay) => {
  const text = texts.get(overlay)!;
  const manifests = manifestsIn(text);
  const workloads = workloadsIn(manifests);
  const apps = workloads.filter(({ labels }) => labels['app.kubernetes.io/part-of'] === 'gatehouse');
  const named = (kind: string, name: string): Manifest | undefined => manifests.find((each) => each.kind === kind && each.metadata.name === name);

  itValidated.each(KUBERNETES)('are what Kubernetes %s knows', (version) => {
    const folder = mkdtempSync(join(tmpdir(), 'gatehouse-k8s-'));
    const file = join(folder, 'rendered.yaml');
    writeFileSync(file, text);
    try {
      const lines = execFileSync(validate!, ['--strict', '--kubernetes-version', version, file], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
      expect(
        lines
          .trim()
          .split('\n')
          .filter((line) => line.includes(' passed for resource ')),
      ).toHaveLength(manifests.length);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('run everything with no right that an ordinary program lacks', () => {
    for (const { pod, of } of workloads) {
      expect({ name: of.metadata.name, refused: refusedByRestricted(pod) }).toEqual({ name: of.metadata.name, refused: [] });
      expect(pod.automountServiceAccountToken).toBe(false);
      expect(named('ServiceAccount', pod.serviceAccountName!)?.automountServiceAccountToken).toBe(false);
      for (const { resources } of pod.containers)
        expect(resources).toMatchObject({ requests: { cpu: expect.anything(), memory: expect.anything() }, limits: {} });
    }
    for (const { pod } of apps) expect(pod.containers[0]!.securityContext?.readOnlyRootFilesystem).toBe(true);
    expect(named('Namespace', 'gatehouse')?.metadata.labels).toMatchObject({ 'pod-security.kubernetes.io/enforce': 'restricted' });
  });

  it('name nothing that is not there', () => {
    for (const { pod } of workloads)
      for (const { env = [], envFrom = [] } of pod.containers) {
        for (const { configMapRef, secretRef } of envFrom) {
          if (configMapRef !== undefined) expect(named('ConfigMap', configMapRef.name)).toBeDefined();
          if (secretRef !== undefined) expect(named('Secret', secretRef.name)).toBeDefined();
        }
        for (const { valueFrom } of env)
          if (valueFrom !== undefined && valueFrom.secretKeyRef.optional !== true)
            expect(named('Secret', valueFrom.secretKeyRef.name)?.data).toHaveProperty(valueFrom.secretKeyRef.key);
      }
    for (const { spec } of manifests.filter(({ kind }) => kind === 'HorizontalPodAutoscaler')) {
      expect(named(spec.scaleTargetRef!.kind, spec.scaleTargetRef!.name)).toBeDefined();
      expect(spec.minReplicas).toBeGreaterThanOrEqual(2);
    }
    for (const { spec } of manifests.filter(({ kind }) => kind === 'Ingress'))
      for (const { backend } of spec.rules!.flatMap(({ http }) => http.paths))
        expect(named('Service', backend.service.name)?.spec.ports).toContainEqual(expect.objectContaining({ name: backend.service.port.name }));
  });

  it('bring all that the filling of views needs, before anything else is applied', () => {
    const isFirst = (manifest: Manifest | undefined): void => expect(manifest?.metadata.labels).toMatchObject({ 'gatehouse/apply': 'first' });
    const { of, pod, labels } = workloads.find(({ of }) => of.kind === 'CronJob')!;
    for (const needed of [of, named('Namespace', 'gatehouse'), named('ServiceAccount', pod.serviceAccountName!)]) isFirst(needed);
    for (const { configMapRef } of pod.containers[0]!.envFrom!) isFirst(named('ConfigMap', configMapRef!.name));
    for (const { valueFrom } of pod.containers[0]!.env!) if (valueFrom !== undefined) isFirst(named('Secret', valueFrom.secretKeyRef.name));
    for (const { configMap } of pod.volumes!) if (configMap !== undefined) isFirst(named('ConfigMap', configMap.name));
    const letOut = manifests.filter(({ kind, spec }) => kind === 'NetworkPolicy' && spec.egress !== undefined && selects(spec.podSelector!, labels));
    expect(letOut.map(({ metadata }) => metadata.name)).toEqual(['dns', 'engines-out']);
    for (const policy of letOut) isFirst(policy);
  });

  it('can be applied again with other settings: no Job is among them, whose template could not be changed', () => {
    expect(manifests.filter(({ kind }) => kind === 'Job')).toEqual([]);
    for (const { spec } of manifests.filter(({ kind }) => kind === 'CronJob')) expect(spec.suspend).toBe(true);
  });

  it('never start a second pod beside one that holds a disk', () => {
    for (const { of, pod } of workloads)
      if (of.kind === 'Deployment' && (pod.volumes ?? []).some((volume) => 'persistentVolumeClaim' in volume)) {
        expect(of.spec.strategy).toEqual({ type: 'Recreate' });
        expect(of.spec.replicas).toBe(1);
      }
  });

  it('select pods that are there, at ports where they listen', () => {
    for (const { kind, metadata, spec } of manifests) {
      if (kind !== 'Service' && kind !== 'PodDisruptionBudget') continue;
      const selector = kind === 'Service' ? { matchLabels: spec.selector } : spec.selector!;
      const selected = workloads.filter(({ labels }) => selects(selector, labels));
      expect({ kind, name: metadata.name, selected: selected.length }).toEqual({ kind, name: metadata.name, selected: 1 });
      const ports = selected[0]!.pod.containers.flatMap(({ ports = [] }) => ports.map(({ name }) => name));
      for (const { targetPort } of spec.ports ?? []) expect(ports).toContain(targetPort);
    }
  });

  it('let traffic through to ports where somebody listens, and from pods that are there', () => {
    const policies = manifests.filter(({ kind }) => kind === 'NetworkPolicy');
    const listening = (of: typeof workloads): readonly number[] =>
      of.flatMap(({ pod }) => pod.containers.flatMap(({ ports = [] }) => ports.map(({ containerPort }) => containerPort)));
    expect(policies.map(({ metadata, spec }) => [metadata.name, spec.podSelector])).toContainEqual(['default-deny', {}]);
    for (const { spec } of policies) {
      const selected = workloads.filter(({ labels }) => selects(spec.podSelector!, labels));
      expect(selected).not.toEqual([]);
      for (const { from, ports } of spec.ingress ?? []) {
        for (const { podSelector } of from)
          if (podSelector !== undefined) expect(workloads.filter(({ labels }) => selects(podSelector, labels))).not.toEqual([]);
        for (const { port } of ports) expect(listening(selected)).toContain(port);
      }
      for (const { to, ports } of spec.egress ?? [])
        for (const { podSelector } of to) {
          if (podSelector === undefined) continue;
          const reached = workloads.filter(({ labels }) => selects(podSelector, labels));
          for (const { port } of ports) expect(listening(reached)).toContain(port);
        }
    }
  });

  it.each(apps.map(({ of, pod }) => [of.metadata.name, pod] as const))('tell %s what it needs to start, and nothing that no setting is', (_name, pod) => {
    const [container] = pod.containers;
    const variables = variablesOf(container!, manifests);
    const parts = new Set((container!.env ?? []).flatMap(({ value = '' }) => [...value.matchAll(/\$\((\w+)\)/g)].map(([, part]) => part)));
    const known = [...settings.map(({ name }) => name), ...OF_NODE];
    expect(Object.keys(variables).filter((name) => !known.includes(name) && !parts.has(name))).toEqual([]);
    expect(Object.values(variables).join()).not.toContain('$(');
    for (const type of SETTINGS_CLASSES) readSettings<object>(type, variables);
    const { EVENTSTORE_URL, MONGODB_URL, KAFKA_BROKERS } = readSettings(EngineSettings, variables);
    expect([EVENTSTORE_URL, MONGODB_URL, KAFKA_BROKERS]).not.toContain(null);
  });

  it.each(apps.map(({ of, pod }) => [of.metadata.name, pod] as const))('tell %s the secrets that it uses, and no other', (_name, pod) => {
    const [container] = pod.containers;
    expect(container!.envFrom!.filter(({ secretRef }) => secretRef !== undefined)).toEqual([]);
    const told = Object.keys(variablesOf(container!, manifests)).filter((name) => secrets.has(name));
    const { used, required } = secretsUsed(container!.args!);
    expect(used).toEqual(expect.arrayContaining(told));
    expect(told).toEqual(expect.arrayContaining(required));
    // Nor under another name, or in parts.
    const keys = container!.env!.flatMap(({ valueFrom }) => (valueFrom === undefined ? [] : [valueFrom.secretKeyRef.key]));
    const engine = (key: string): string => /^(EVENTSTORE|MONGODB|KAFKA|S3)_/.exec(key)?.[1] ?? key;
    expect([...new Set(keys.map(engine))].filter((each) => !used.some((name) => engine(name) === each))).toEqual([]);
  });

  it('let nobody out to an engine that it does not use', () => {
    for (const { labels, pod } of apps) {
      const reached = manifests.filter(
        ({ kind, metadata, spec }) => kind === 'NetworkPolicy' && metadata.name.endsWith('s-out') && selects(spec.podSelector!, labels),
      );
      const ports = reached.flatMap(({ spec }) => (spec.egress ?? []).flatMap((rule) => rule.ports.map(({ port }) => port)));
      const { used } = secretsUsed(pod.containers[0]!.args!);
      expect(ports).toEqual(expect.arrayContaining([2113, 27017]));
      const kafkaOut = manifests.find(({ metadata }) => metadata.name === 'kafka-out')!;
      expect(kafkaOut.spec.egress!.flatMap((rule) => rule.ports.map(({ port }) => port))).toEqual([9092]);
      expect(selects(kafkaOut.spec.podSelector!, labels)).toBe(used.includes('KAFKA_PASSWORD'));
      expect(
        reached.filter(({ metadata }) => metadata.name === 'engines-out').flatMap(({ spec }) => spec.egress!.flatMap((rule) => rule.ports)),
      ).not.toContainEqual(expect.objectContaining({ port: 9092 }));
    }
  });

  it('let nobody out to receivers of others and to mail servers, but for those that send there', () => {
    const lets = (name: string): readonly string[] =>
      apps.filter(({ labels }) => selects(named('NetworkPolicy', name)!.spec.podSelector!, labels)).map(({ of }) => of.metadata.name);
    expect(lets('files-out').toSorted()).toEqual(['audit-logs', 'directory-sync', 'gateway']);
    expect([lets('webhooks-out').toSorted(), lets('mail-out')]).toEqual([['audit-logs', 'identity', 'notifications'], ['identity']]);
    expect(named('NetworkPolicy', 'mail-out')!.spec.egress!.flatMap(({ ports }) => ports.map(({ port }) => port))).toEqual([25, 465, 587]);
  });

  it('say where each service listens, at its own name and port', () => {
    const addresses = settingsOf(TransportSettings).filter(({ name }) => name.endsWith('_ADDRESS'));
    const told = variablesOf(apps[0]!.pod.containers[0]!, manifests);
    for (const { name } of addresses) {
      const [host, port] = told[name]!.split(':');
      expect(named('Service', host!)?.spec.ports).toEqual([expect.objectContaining({ port: Number(port) })]);
      expect(`${host}`).toBe(name.replace('_ADDRESS', '').toLowerCase().replaceAll('_', '-'));
    }
    expect(apps.filter(({ labels }) => labels['app.kubernetes.io/component'] === 'service')).toHaveLength(addresses.length);
  });

  it('keep secrets out of everything but Secrets', () => {
    for (const { kind, data = {} } of manifests)
      if (kind === 'ConfigMap')
        for (const [name, value] of Object.entries(data))
          if (secrets.has(name)) expect({ name, value }).toEqual({ name, value: expect.not.stringMatching(/@/) });
    for (const { pod } of workloads)
      for (const { env = [] } of pod.containers) for (const { name, value } of env) if (secrets.has(name)) expect(value ?? '').not.toMatch(/:[^$]+@/);
  });

  it('replace pods one by one, and give each the time that it may take to stop', () => {
    const deployments = apps.filter(({ of }) => of.kind === 'Deployment');
    for (const { of, pod } of deployments) {
      const [container] = pod.containers;
      const { SHUTDOWN_TIMEOUT } = readSettings(PlatformSettings, variablesOf(container!, manifests));
      expect(pod.terminationGracePeriodSeconds! * 1000).toBeGreaterThan(container!.lifecycle!.preStop.sleep.seconds * 1000 + 2 * SHUTDOWN_TIMEOUT);
      // Callers look addresses up again every 2 s.
      expect(container!.lifecycle!.preStop.sleep.seconds * 1000).toBeGreaterThan(milliseconds('4s')!);
      expect(of.spec.strategy!.rollingUpdate!.maxUnavailable).toBe(0);
      expect(of.spec.replicas).toBeUndefined();
      expect([container!.startupProbe, container!.readinessProbe, container!.livenessProbe]).not.toContain(undefined);
      for (const kind of ['HorizontalPodAutoscaler', 'PodDisruptionBudget']) expect(named(kind, of.metadata.name)).toBeDefined();
    }
    expect(deployments).toHaveLength(6);
  });
});

describeRendered('the manifests of dev', () => {
  const { text } = kustomize === null ? { text: '' } : rendered(kustomize, 'k8s/overlays/dev');

  it('hold the engines that specs run on', () => {
    for (const { image } of [eventstore, kafka, mongodb]) expect(text).toContain(`image: ${image}\n`);
  });
});

describeRendered('the manifests of production', () => {
  const lines = Object.entries(productionFiles()).flatMap(([file, text]) => [...text.matchAll(/^(\w+)=/gm)].map(([, name]) => ({ file, name: name! })));

  it.each(Object.keys(productionFiles()))('are not rendered without %s, and say so', (file) => {
    expect(renderedProduction(kustomize!, { [file]: null })).toEqual({ failed: true, text: expect.stringContaining(file) });
  });

  it.each(lines)('are not rendered without $name in $file, and say so', ({ file, name }) => {
    const text = productionFiles()[file]!.replace(new RegExp(`^${name}=.*\n`, 'm'), '');
    expect(renderedProduction(kustomize!, { [file]: text })).toEqual({ failed: true, text: expect.stringContaining(name) });
  });

  it('speak to engines over TLS and by name and password, whatever the files say', () => {
    const files = productionFiles();
    const override = 'KAFKA_TLS=off\nMONGODB_URL=mongodb://elsewhere/gatehouse\nEVENTSTORE_URL=esdb://elsewhere?tls=false\n';
    const manifests = manifestsIn(renderedProduction(kustomize!, { 'secrets.env': files['secrets.env']! + override }).text);
    for (const { pod, labels } of workloadsIn(manifests)) {
      expect(labels['app.kubernetes.io/part-of']).toBe('gatehouse');
      const variables = variablesOf(pod.containers[0]!, manifests);
      const { EVENTSTORE_URL, MONGODB_URL } = readSettings(EngineSettings, variables);
      const { KAFKA_TLS, KAFKA_TLS_CA, KAFKA_USERNAME, KAFKA_PASSWORD } = readSettings(KafkaSettings, variables);
      const records = labels['app.kubernetes.io/component'] === 'service';
      const stores = labels['app.kubernetes.io/component'] !== 'api';
      expect(new URL(EVENTSTORE_URL!.replace('esdb:', 'http:').replaceAll(/,[^?]*/g, '')).username).toBe(records ? 'gatehouse' : 'gatehouse-reader');
      expect(new RegExp('//([^:]+):').exec(MONGODB_URL!)![1]).toBe(stores ? 'gatehouse' : 'gatehouse-gateway');
      expect(EVENTSTORE_URL).toMatch(/^esdb:\/\/[a-z-]+:p{40}@eventstore-1\.example\.com:2113,.*\?tls=true&tlsCAFile=\/etc\/gatehouse\/engines-ca\.crt$/);
      expect(MONGODB_URL).toMatch(
        /^mongodb:\/\/[a-z-]+:p{40}@mongodb-1\.example\.com:27017,.*\/\?authSource=admin&replicaSet=rs0&tls=true&tlsCAFile=\/etc\/gatehouse\/engines-ca\.crt$/,
      );
      const announces = ['identity', 'authorization', 'directory-sync'].includes(labels['app.kubernetes.io/name']!);
      if (!announces) expect({ KAFKA_USERNAME, KAFKA_PASSWORD }).toEqual({ KAFKA_USERNAME: null, KAFKA_PASSWORD: null });
      else
        expect({ KAFKA_TLS, KAFKA_TLS_CA, KAFKA_USERNAME, KAFKA_PASSWORD }).toEqual({
          KAFKA_TLS: true,
          KAFKA_TLS_CA: '/etc/gatehouse/engines-ca.crt',
          KAFKA_USERNAME: 'gatehouse',
          KAFKA_PASSWORD: 'p'.repeat(40),
        });
    }
  });

  const starting = workloadsIn(manifestsIn(texts.get('production') ?? ''));

  it.each(starting.map(({ of, pod }) => [of.metadata.name, pod] as const))(
    'tell %s what its own start takes, connection strings and files included',
    async (_name, pod) => {
      const [container] = pod.containers;
      const folder = mkdtempSync(join(tmpdir(), 'gatehouse-k8s-'));
      try {
        const ca = join(folder, 'engines-ca.crt');
        writeFileSync(ca, (await givenAuthority('Authority')).ca);
        const told = Object.entries(variablesOf(container!, manifestsIn(texts.get('production')!)));
        const moved = told.map(([name, value]) => [name, value.replaceAll(MOUNTED_CA, ca)] as const);
        expect(moved.filter(([, value]) => value.includes(ca)).map(([name]) => name)).toEqual(expect.arrayContaining(['EVENTSTORE_URL', 'MONGODB_URL']));
        await requireSettings(settingsUsed(container!.args!), Object.fromEntries(moved));
        // Where the file is not there, the start says so for each that names it.
        await expect(requireSettings(settingsUsed(container!.args!), Object.fromEntries(told))).rejects.toThrow(
          /tlsCAFile in EVENTSTORE_URL: .*tlsCAFile in MONGODB_URL: /,
        );
      } finally {
        rmSync(folder, { recursive: true });
      }
    },
  );

  it('say what they are told, where it belongs', () => {
    const text = texts.get('production')!;
    expect(text).not.toContain('from cluster.env');
    const manifests = manifestsIn(text);
    expect(manifests.find(({ kind }) => kind === 'Ingress')?.spec).toMatchObject({
      tls: [{ hosts: ['api.example.com'] }],
      rules: [{ host: 'api.example.com' }],
    });
    for (const { pod } of workloadsIn(manifests)) expect(variablesOf(pod.containers[0]!, manifests)).toMatchObject({ PUBLIC_URL: 'https://api.example.com' });
    for (const name of ['engines-out', 'kafka-out'])
      expect(manifests.find(({ metadata }) => metadata.name === name)?.spec.egress?.[0]?.to).toEqual([{ ipBlock: { cidr: '10.1.0.0/16' } }]);
    for (const { pod } of workloadsIn(manifests)) expect(pod.containers[0]!.image).toBe('registry.example.com/gatehouse:0.1.0');
    // Otherwise pods would go on with the settings of before.
    const other = renderedProduction(kustomize!, { 'cluster.env': productionFiles()['cluster.env']!.replace('kafka-1', 'kafka-4') }).text;
    expect(settingsNameIn(other)).not.toBe(settingsNameIn(text));
  });
});

function settingsNameIn(text: string): string | undefined {
  return /name: (gatehouse-settings-\w+)/.exec(text)?.[1];
}
