import { AppProcess } from '#libs/platform/src/runtime/app-process';
import { runProgram } from '#libs/platform/src/runtime/program';
import { gatewayApp } from './gateway.app.ts';

await runProgram(async (options) => ({ process: await AppProcess.start(gatewayApp, options) }));
