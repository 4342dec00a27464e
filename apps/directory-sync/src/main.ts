import { AppProcess } from '#libs/runtime/src/app-process';
import { runProgram } from '#libs/runtime/src/program';
import { directorySyncApp } from './directory-sync.app.ts';

await runProgram(async (options) => ({ process: await AppProcess.start(directorySyncApp, options) }));
