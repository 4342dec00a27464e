// Run by the MongoDB image on its first start, and by hand where a user was added since: makes the users of Gatehouse, each with the rights that its processes
// use, and sets the rights and passwords of those that are there.
/* global db, process */
const name = process.env.INSTALLATION || 'gatehouse';
const database = db.getSiblingDB(name);
const on = (collection, actions) => ({ resource: { db: name, collection }, actions });

// The gateway keeps what is short-lived, and the keys that stored answers are sealed under, and notes with the first who start which log it all belongs to. Of rows it
// knows only when something was last used; and it removes no key.
const shortLived = ['find', 'insert', 'update', 'remove', 'createIndex'];
const gateway = {
  privileges: [
    ...['short_lived', 'counters', 'leases', 'rows.stamps'].map((collection) => on(collection, shortLived)),
    ...['keys', 'installation'].map((collection) => on(collection, ['find', 'insert'])),
  ],
  roles: [],
};
if (database.getRole('gateway') === null) database.createRole({ role: 'gateway', ...gateway });
else database.updateRole('gateway', gateway);

const users = {
  gateway: { pwd: process.env.MONGODB_GATEWAY_PASSWORD, roles: ['gateway'] },
  // Services make the collections and indexes of their views, and drop those of old ones; nobody of ours needs to administer the database.
  gatehouse: { pwd: process.env.MONGODB_PASSWORD, roles: ['readWrite'] },
};
for (const [user, what] of Object.entries(users))
  if (database.getUser(user) === null) database.createUser({ user, ...what });
  else database.updateUser(user, what);
