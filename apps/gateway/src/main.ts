import { AppProcess } from '#libs/runtime/src/app-process';
import { runProgram } from '#libs/runtime/src/program';
import { gatewayApp } from './gateway.app.ts';

await runProgram(async (options) => ({ process: await AppProcess.start(gatewayApp, options) }));
