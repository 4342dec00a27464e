import { NotificationsSettings, WebhookSettings } from '#libs/platform/src/config/settings';
import type { App } from '#libs/runtime/src/app';
import { notifications } from './notifications.module.ts';

export const notificationsApp: App = { name: 'notifications', services: [notifications], settings: [NotificationsSettings, WebhookSettings] };
