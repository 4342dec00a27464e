import type { Container, PodSpec } from '#libs/testing/src/deployment/manifests';

const VOLUMES = ['configMap', 'csi', 'downwardAPI', 'emptyDir', 'ephemeral', 'persistentVolumeClaim', 'projected', 'secret'];

/** What a namespace at the level `restricted` of the Pod Security Standards would refuse, in its words. */
export function refusedByRestricted(pod: PodSpec): readonly string[] {
  const containers = [...pod.containers, ...(pod.initContainers ?? [])];
  const refused = containers.flatMap((container) => refusedOf(container, pod));
  if (pod.hostNetwork || pod.hostPID || pod.hostIPC) refused.push('host namespaces');
  for (const { name, ...volume } of pod.volumes ?? [])
    if (!Object.keys(volume).every((type) => VOLUMES.includes(type))) refused.push(`restricted volume types: ${name}`);
  return refused;
}

function refusedOf({ name, securityContext = {}, ports = [] }: Container, pod: PodSpec): string[] {
  const { runAsNonRoot = pod.securityContext?.runAsNonRoot, runAsUser = pod.securityContext?.runAsUser } = securityContext;
  const seccomp = (securityContext.seccompProfile ?? pod.securityContext?.seccompProfile)?.type;
  const refused: string[] = [];
  if (securityContext.privileged) refused.push('privileged');
  if (securityContext.allowPrivilegeEscalation !== false) refused.push('allowPrivilegeEscalation != false');
  if (!securityContext.capabilities?.drop?.includes('ALL')) refused.push('unrestricted capabilities');
  if (securityContext.capabilities?.add?.some((added) => added !== 'NET_BIND_SERVICE')) refused.push('added capabilities');
  if (runAsNonRoot !== true || runAsUser === 0) refused.push('runAsNonRoot != true');
  if (seccomp !== 'RuntimeDefault' && seccomp !== 'Localhost') refused.push('seccompProfile');
  if (ports.some(({ hostPort }) => hostPort !== undefined)) refused.push('hostPort');
  return refused.map((what) => `${name}: ${what}`);
}
