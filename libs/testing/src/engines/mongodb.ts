import { MongoClient } from 'mongodb';
import type { EngineDefinition } from './engine.ts';
import type { EngineProcess } from './engine-process.ts';
import { startJavaEngine } from './java-engine.ts';
import type { WatchedDirectory } from './watched-directory.ts';

/** As a process it is a server that speaks MongoDB's protocol and stores in a file. A kill may lose its last second: stop it, or pause it. */
export const mongodb: EngineDefinition = {
  name: 'mongodb',
  title: 'MongoDB',
  process: 'A server with the protocol of MongoDB',
  setting: 'MONGODB_URL',
  addressAt: (port) => `mongodb://127.0.0.1:${port}`,
  answers,
  startProcess,
  image: 'mongo:8.0',
  imageVariables: () => ({}),
  imageCommand: (port) => ['mongod', '--bind_ip_all', '--port', String(port)],
};

function startProcess(directory: WatchedDirectory): Promise<EngineProcess> {
  return startJavaEngine(mongodb, { main: 'MongodbServer', isOurs: true, flags: ['-Xmx320m'], args: (port) => ['data', String(port)] }, directory);
}

async function answers(address: string): Promise<boolean> {
  const client = new MongoClient(address, { serverSelectionTimeoutMS: 500, connectTimeoutMS: 1000, socketTimeoutMS: 2000 });
  try {
    await client.db('admin').command({ ping: 1 });
    return true;
  } catch {
    return false;
  } finally {
    await client.close();
  }
}
