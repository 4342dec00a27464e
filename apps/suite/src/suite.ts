import { auditLogsApp } from '#apps/audit-logs/src/audit-logs.app';
import { authorizationApp } from '#apps/authorization/src/authorization.app';
import { directorySyncApp } from '#apps/directory-sync/src/directory-sync.app';
import { gatewayApp } from '#apps/gateway/src/gateway.app';
import { ensureKey, identityApp } from '#apps/identity/src/identity.app';
import { notificationsApp } from '#apps/notifications/src/notifications.app';
import type { Operation } from '#libs/contracts/src/operation';
import { PlatformSettings } from '#libs/platform/src/config/settings';
import type { App, RunningApp } from '#libs/runtime/src/app';
import { AppProcess, type ProcessOptions } from '#libs/runtime/src/app-process';
import { adminAddress } from './admin/admin-address.ts';
import { listenForAdmin } from './admin/admin-socket.ts';
import { carryOutOnData } from './admin/commands.ts';
import { firstKey, type FirstKey } from './first-key.ts';

const apps: readonly App[] = [gatewayApp, identityApp, authorizationApp, directorySyncApp, auditLogsApp, notificationsApp];

/** The gateway and the services in one process. */
export class Suite {
  static readonly app: App = {
    name: 'suite',
    modules: apps.flatMap(({ modules = [] }) => modules),
    services: apps.flatMap(({ services }) => services),
    settings: [...new Set(apps.flatMap(({ settings }) => settings))],
    api: gatewayApp.api,
    faces: apps.flatMap(({ faces = [] }) => faces),
  };

  /** Only in development mode, and only while serving. */
  firstKey: FirstKey | null = null;
  process!: AppProcess;

  private constructor() {}

  /** @throws StartRefused with the way out, when something outside of this program stands in the way */
  static async start(options: ProcessOptions): Promise<Suite> {
    const suite = new Suite();
    suite.process = await AppProcess.start({ ...Suite.app, prepare: (process) => suite.prepare(process) }, options);
    return suite;
  }

  get url(): string {
    return this.process.url;
  }

  call<Answer>(operation: Operation<Answer>): Promise<Answer> {
    return this.process.call(operation);
  }

  get<Port>(port: abstract new (...args: never[]) => Port): Port {
    return this.process.get(port);
  }

  close(): Promise<void> {
    return this.process.close();
  }

  /** The key of development mode, and the one that the settings name, work from the first request on. */
  private async prepare(process: RunningApp): Promise<void> {
    const { GATEHOUSE_MODE, DATA_DIR } = process.settings.of(PlatformSettings);
    if (GATEHOUSE_MODE === 'development') {
      this.firstKey = firstKey(DATA_DIR);
      await ensureKey(process, this.firstKey.value, null);
    }
    for (const app of apps) await app.prepare?.(process);
    // On engines a command is a process of its own, and nothing of the suite needs to lie in DATA_DIR.
    if (process.engines.directory === null) return;
    const admin = await listenForAdmin(adminAddress(DATA_DIR), (request, tell) => carryOutOnData(process, request, tell));
    process.stopLater(() => admin.close());
  }
}
