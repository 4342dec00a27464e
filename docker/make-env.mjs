// Writes the secrets of docker-compose.yml into .env, once: other keys than those that the stored data was written under would make it unreadable. Where the file is
// there, it adds what a later release asks for, and changes nothing.
import { randomBytes } from 'node:crypto';
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const file = fileURLToPath(new URL('../.env', import.meta.url));
const secret = () => randomBytes(32).toString('base64url');

const lines = [
  '# Secrets of docker-compose.yml, made by docker/make-env.mjs. Keep a copy of MASTER_KEYS elsewhere: without it the data cannot be read.',
  `MASTER_KEYS=${randomBytes(32).toString('base64')}`,
  `SERVICE_KEY=${secret()}`,
  '# A first secret key for the API, of the environment `development`.',
  `GATEHOUSE_API_KEY=sk_${secret()}`,
  `MONGODB_ROOT_PASSWORD=${secret()}`,
  `MONGODB_PASSWORD=${secret()}`,
  `MONGODB_GATEWAY_PASSWORD=${secret()}`,
  `KAFKA_PASSWORD=${secret()}`,
  '# Of the store of files; of a bucket of your own where S3_BUCKET and S3_ENDPOINT name one.',
  `S3_SECRET_ACCESS_KEY=${secret()}`,
  '# Where the API is published, on this machine only; 0.0.0.0:3000 is for everybody.',
  'PUBLISH=127.0.0.1:3000',
  '# The address of the API as applications know it: tokens name it as their issuer.',
  'PUBLIC_URL=http://localhost:3000',
];

try {
  writeFileSync(file, `${lines.join('\n')}\n`, { flag: 'wx', mode: 0o600 });
  console.log(`Secrets are in ${file}. Now: docker compose up`);
} catch (error) {
  if (error.code !== 'EEXIST') throw error;
  const nameOf = (line) => /^(\w+)=/.exec(line)?.[1];
  const present = readFileSync(file, 'utf8');
  const names = new Set(present.split('\n').map(nameOf));
  // Where this one is missing, it is kept elsewhere: a new one would open nothing.
  const missing = lines.filter((line) => nameOf(line) !== undefined && nameOf(line) !== 'MASTER_KEYS' && !names.has(nameOf(line)));
  if (missing.length > 0) {
    appendFileSync(file, `${present.endsWith('\n') ? '' : '\n'}${missing.join('\n')}\n`);
    console.log(`Added to ${file}: ${missing.map(nameOf).join(', ')}.`);
    process.exit(0);
  }
  console.error(
    `${file} is there already and stays as it is. Where the volumes are to be forgotten too: docker compose down --volumes, remove it, and start again.`,
  );
  process.exitCode = 1;
}
