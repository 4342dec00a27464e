import { AppProcess } from '#libs/runtime/src/app-process';
import { runProgram } from '#libs/runtime/src/program';
import { authorizationApp } from './authorization.app.ts';

await runProgram(async (options) => ({ process: await AppProcess.start(authorizationApp, options) }));
