import { auditLogsApp } from '#apps/audit-logs/src/audit-logs.app';
import { authorizationApp } from '#apps/authorization/src/authorization.app';
import { directorySyncApp } from '#apps/directory-sync/src/directory-sync.app';
import { gatewayApp } from '#apps/gateway/src/gateway.app';
import { identityApp } from '#apps/identity/src/identity.app';
import { notificationsApp } from '#apps/notifications/src/notifications.app';
import { Suite } from '#apps/suite/src/suite';
import { settingsOf, type SettingField } from '#libs/platform/src/config/setting';
import { settingsOfProcess, type App, type Run } from '#libs/runtime/src/app';

/** What the image runs, by its first argument; the command line, where it does not fill views, may be asked for anything. */
const PROCESSES: Readonly<Record<string, { readonly app: App; readonly run: Run }>> = {
  ...Object.fromEntries(
    [gatewayApp, identityApp, authorizationApp, directorySyncApp, auditLogsApp, notificationsApp, Suite.app].map((app) => [app.name, { app, run: 'server' }]),
  ),
  gatehouse: { app: Suite.app, run: 'nothing' },
};

/** Without these a process of a cluster does not start, or others do not believe it. */
const REQUIRED = ['MASTER_KEYS', 'SERVICE_KEY', 'EVENTSTORE_URL', 'MONGODB_URL'];

/** The classes of settings that a container uses, told by its arguments. */
export function settingsUsed([name, command]: readonly string[]): readonly (new () => object)[] {
  const { app, run } = PROCESSES[name!]!;
  return settingsOfProcess(app, command === 'views' ? 'views' : run);
}

/** The secret settings that a container uses, told by its arguments; and of these, those that it cannot do without. */
export function secretsUsed(args: readonly string[]): { readonly used: readonly string[]; readonly required: readonly string[] } {
  const used = settingsUsed(args)
    .flatMap((type): readonly SettingField[] => settingsOf(type))
    .filter(({ secret }) => secret)
    .map((field) => field.name);
  return { used, required: used.filter((each) => REQUIRED.includes(each)) };
}
