// Run by the MongoDB image on its first start: a user that owns the one database of Gatehouse and nothing beside it.
/* global db, process */
db.getSiblingDB('gatehouse').createUser({
  user: 'gatehouse',
  pwd: process.env.MONGODB_PASSWORD,
  roles: [{ role: 'dbOwner', db: 'gatehouse' }],
});
