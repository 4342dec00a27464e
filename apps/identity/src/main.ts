import { AppProcess } from '#libs/runtime/src/app-process';
import { runProgram } from '#libs/runtime/src/program';
import { identityApp } from './identity.app.ts';

await runProgram(async (options) => ({ process: await AppProcess.start(identityApp, options) }));
