import { NotificationsSettings } from '#libs/platform/src/config/settings';
import type { App } from '#libs/runtime/src/app';
import { notifications, NotificationsModule } from './notifications.module.ts';

export const notificationsApp: App = { name: 'notifications', modules: [NotificationsModule], services: [notifications], settings: [NotificationsSettings] };
