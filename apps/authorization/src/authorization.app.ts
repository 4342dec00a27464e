import { AuthorizationSettings } from '#libs/platform/src/config/settings';
import type { App } from '#libs/runtime/src/app';
import { authorization } from './authorization.module.ts';

export const authorizationApp: App = { name: 'authorization', services: [authorization], settings: [AuthorizationSettings] };
