import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { parse } from 'yaml';
import { Metrics } from '#libs/platform/src/metrics';
import { givenProgram } from '#libs/testing/src/given-program';
import { alertRules, Prometheus } from '#libs/testing/src/engines/prometheus';
import { WatchedDirectory } from '#libs/testing/src/engines/watched-directory';
import { givenSuite } from '#libs/testing/src/suite';

const RULES = 'k8s/base/gatehouse.rules.yaml';
/** Of the kubelet, of kube-state-metrics and of EventStoreDB itself. */
const OF_OTHERS = [
  'kubelet_volume_stats_available_bytes',
  'kubelet_volume_stats_capacity_bytes',
  'eventstore_sys_disk_bytes',
  'kube_pod_container_status_restarts_total',
];

const promtool = givenProgram('promtool');
const itChecked = promtool === null ? it.skip : it;
const program = givenProgram('prometheus');
const itWatched = program === null ? it.skip : it;

describe('the alert rules', () => {
  itChecked('are rules', () => {
    expect(execFileSync(promtool!, ['check', 'rules', RULES], { encoding: 'utf8' })).toContain(`SUCCESS: ${alertRules().length} rules found`);
  });

  itChecked('speak when they must, and not before', () => {
    expect(execFileSync(promtool!, ['test', 'rules', 'test/deployment/gatehouse.rules.test.yaml'], { encoding: 'utf8' })).toContain('SUCCESS');
  });

  it('are each tried', () => {
    const tests = readFileSync('test/deployment/gatehouse.rules.test.yaml', 'utf8');
    for (const { alert } of alertRules()) expect(tests).toContain(alert);
  });

  it('are each explained', () => {
    const headings = [...readFileSync('docs/operations.md', 'utf8').matchAll(/^### (Gatehouse\w+)\n\n(?!#)/gm)].map(([, name]) => name);
    expect(headings).toEqual(alertRules().map(({ alert }) => alert));
    const runbooks = [...readFileSync(RULES, 'utf8').matchAll(/runbook: docs\/operations\.md#(\w+)/g)].map(([, anchor]) => anchor);
    expect(runbooks).toEqual(alertRules().map(({ alert }) => alert.toLowerCase()));
  });

  it('are the same where the Prometheus operator takes them', () => {
    const { spec } = parse(readFileSync('k8s/components/prometheus-operator/prometheus-rule.yaml', 'utf8')) as { readonly spec: unknown };
    expect(spec).toEqual(parse(readFileSync(RULES, 'utf8')));
  });

  it('ask for nothing but what processes show', async () => {
    const suite = await givenSuite();
    const shown = await (await fetch(`${suite.url}/metrics`)).text();
    const types = [...shown.matchAll(/^# TYPE (\w+)/gm)].map(([, name]) => name);
    const asked = alertRules().flatMap(({ expr }) =>
      [...expr.matchAll(/\b(?:gatehouse|kubelet|kube|eventstore)_\w+/g)].map(([name]) => name.replace(/_bucket$/, '')),
    );
    expect(asked.filter((name) => !types.includes(name) && !OF_OTHERS.includes(name))).toEqual([]);
  });
});

describe('a Prometheus that looks at processes', () => {
  itWatched('tells which rule speaks, and when it is silent again', async () => {
    const metrics = new Metrics();
    const stopped = metrics.gauge({ name: 'view_stopped', help: 'As a process shows it.', labels: ['view'] });
    const lag = metrics.gauge({ name: 'follower_lag_seconds', help: 'As a process shows it.', labels: ['work'] });
    const server = createServer((_request, response) => void metrics.text().then((text) => response.end(text)));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const directory = WatchedDirectory.create('prometheus-spec');
    const prometheus = await Prometheus.start(program!, directory, [`http://127.0.0.1:${(server.address() as AddressInfo).port}`]);
    try {
      stopped.set({ view: 'organizations' }, 0);
      lag.set({ work: 'forwarder.identity' }, 20);
      await prometheus.eventuallySpeaks('GatehouseForwarderBehind', { instead: { '> 300': '> 10' } });
      expect(await prometheus.speaks('GatehouseReactionBehind', { '> 300': '> 10' })).toEqual([]);
      expect(await prometheus.speaks('GatehouseForwarderBehind')).toEqual([]);
      expect(await prometheus.speaks('GatehouseViewStopped')).toEqual([]);
      stopped.set({ view: 'organizations' }, 1);
      expect(await prometheus.eventuallySpeaks('GatehouseViewStopped')).toEqual([{ labels: { view: 'organizations' }, value: 1 }]);
      prometheus.lookAt([]);
      for (const deadline = Date.now() + 20_000; (await prometheus.speaks('GatehouseViewStopped')).length > 0; await pause(250))
        expect(Date.now()).toBeLessThan(deadline);
    } finally {
      await prometheus.close();
      directory.remove();
      server.closeAllConnections();
      server.close();
    }
  });
});
