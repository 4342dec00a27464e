import { AppProcess } from '#libs/platform/src/runtime/app-process';
import { runProgram } from '#libs/platform/src/runtime/program';
import { authorizationApp } from './authorization.app.ts';

await runProgram(async (options) => ({ process: await AppProcess.start(authorizationApp, options) }));
