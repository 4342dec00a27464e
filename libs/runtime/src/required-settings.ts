import { triedSettings, type Variables } from '#libs/platform/src/config/setting';
import { BlobSettings, EngineSettings, KafkaSettings, PlatformSettings, TransportSettings } from '#libs/platform/src/config/settings';
import { refusalsOf, StartRefused } from '#libs/platform/src/start-refused';
import { areShared, requireAllOrNone } from './engines.ts';
import { credentialsOf, encryptionOf } from './open-blobs.ts';

/** A wrong value of these is refused where nobody uses it, too. */
const ALWAYS_READ = [PlatformSettings, EngineSettings, KafkaSettings, BlobSettings, TransportSettings];

/**
 * Looks at the forms of all settings and of the files that they name, and asks no engine: one start says all that is wrong.
 * @param used the classes of settings that the process uses
 * @throws StartRefused with a sentence for each
 */
export async function requireSettings(used: readonly (new () => object)[], variables: Variables): Promise<void> {
  const wrong = new Map([...ALWAYS_READ, ...used].flatMap((type) => [...triedSettings<object>(type, variables).refusals]));
  const { settings: addresses } = triedSettings(EngineSettings, variables);
  const { settings } = triedSettings(PlatformSettings, variables);
  const { settings: transport } = triedSettings(TransportSettings, variables);
  const kafka = used.includes(KafkaSettings) ? triedSettings(KafkaSettings, variables).settings : null;
  const files = used.includes(BlobSettings) ? triedSettings(BlobSettings, variables).settings : null;
  const isRefused = (name: string): boolean => wrong.has(name);
  const refusals = [
    ...wrong.values(),
    ...(await refusalsOf([
      () => requireAllOrNone((name) => isRefused(name) || addresses[name] !== null, kafka),
      () => files === null || isRefused('S3_ACCESS_KEY_ID') || isRefused('S3_SECRET_ACCESS_KEY') || credentialsOf(files),
      () => files === null || isRefused('S3_ENCRYPTION') || encryptionOf(files),
      async () => used.includes(TransportSettings) && (await import('#libs/messaging/src/tcp/service-security')).serviceSecurity(transport),
    ])),
    ...(areShared(addresses) ? await (await import('./distributed.ts')).refusalsOfEngines(addresses, { settings, kafka }, isRefused) : []),
  ];
  if (refusals.length > 0) throw new StartRefused(refusals.join(' '));
}
