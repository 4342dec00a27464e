// Sets the access lists of EventStoreDB's whole server, as an administrator: EVENTSTORE_URL with its name and password. Members of the first group (gatehouse) read and append, those of the
// second one (gatehouse-readers) read, metadata too (what hides events of a stream stands there); nobody else but administrators does either, with another password or without one. What else lies in those lists stays.
import { EventStoreDBClient, jsonEvent, NO_STREAM, StreamNotFoundError } from '@eventstore/db-client';

const [writers = 'gatehouse', readers = 'gatehouse-readers'] = process.argv.slice(2);
const ADMINS = '$admins';
const mayRead = [writers, readers, ADMINS];
const mayWrite = [writers, ADMINS];

const client = EventStoreDBClient.connectionString(process.env.EVENTSTORE_URL ?? '');
try {
  await change('$$$all', '$metadata', (before) => ({ ...before, $acl: { ...before.$acl, $r: mayRead } }));
  await change('$settings', '$settings', (before) => ({
    ...before,
    $userStreamAcl: { ...before.$userStreamAcl, $r: mayRead, $w: mayWrite, $d: ADMINS, $mr: mayRead, $mw: ADMINS },
  }));
} catch (error) {
  console.error(`The access lists cannot be set: ${error.message}`);
  process.exitCode = 1;
} finally {
  await client.dispose();
}

/** At the revision that was read, so that nobody else's change is lost. */
async function change(stream, type, changed) {
  const last = await lastOf(stream);
  const data = changed(last?.data ?? {});
  await client.appendToStream(stream, jsonEvent({ type, data }), { expectedRevision: last?.revision ?? NO_STREAM });
  console.log(`${stream} ${JSON.stringify(data)}`);
}

async function lastOf(stream) {
  let last;
  try {
    // To its end: what is left in the middle keeps the client from being closed.
    for await (const { event } of client.readStream(stream, { direction: 'backwards', fromRevision: 'end', maxCount: 1 })) last = event;
  } catch (error) {
    if (!(error instanceof StreamNotFoundError)) throw error;
  }
  return last;
}
