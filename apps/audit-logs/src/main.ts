import { AppProcess } from '#libs/runtime/src/app-process';
import { runProgram } from '#libs/runtime/src/program';
import { auditLogsApp } from './audit-logs.app.ts';

await runProgram(async (options) => ({ process: await AppProcess.start(auditLogsApp, options) }));
