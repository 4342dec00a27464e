import { AppProcess } from '#libs/runtime/src/app-process';
import { runProgram } from '#libs/runtime/src/program';
import { notificationsApp } from './notifications.app.ts';

await runProgram(async (options) => ({ process: await AppProcess.start(notificationsApp, options) }));
