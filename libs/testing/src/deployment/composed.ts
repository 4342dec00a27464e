import type { AppContainer, Deployed, DeploymentNeeds } from './app-container.ts';
import { interpolatedCompose, madeSecrets, type ComposeService } from './compose.ts';
import { imageOfDockerfile } from './image.ts';

/** What Compose starts of the cluster, with secrets as `docker/make-env.mjs` makes them. Settings are those of a `docker-compose.override.yml`. */
export async function deployedByCompose({ ports, settings, secrets }: DeploymentNeeds): Promise<Deployed> {
  const { services } = interpolatedCompose({ ...madeSecrets(), ...secrets });
  const image = imageOfDockerfile();
  const toldTo = ({ environment }: ComposeService): AppContainer['variables'] => {
    const told = Object.entries({ ...image.variables, ...environment, ...settings });
    return Object.fromEntries(told.map(([name, value]) => [name, atThisMachine(String(value), ports)]));
  };
  const apps = Object.entries(services).filter(([, { image: built, profiles }]) => built === 'gatehouse' && profiles === undefined);
  return {
    apps: apps.map(([name, service]) => ({
      name,
      args: service.command!,
      variables: toldTo(service),
      user: image.user,
      files: {},
      writable: Object.fromEntries((service.tmpfs ?? []).map((path) => [path, '50%'])),
      asked: {},
    })),
    jobs: [],
    tls: null,
  };
}

/** Engines are known by the names of their containers. */
function atThisMachine(value: string, ports: DeploymentNeeds['ports']): string {
  return Object.entries(ports).reduce((text, [name, port]) => text.replaceAll(new RegExp(`\\b${name}:\\d+\\b`, 'g'), `localhost:${port}`), value);
}
