// Carries out requests, read as lines of JSON, with tarantool-driver. See bridge.py for the lines.
// Usage: node bridge.js HOST PORT USER PASSWORD
'use strict';

const readline = require('readline');
const TarantoolConnection = require('tarantool-driver');

const [host, port, user, password] = process.argv.slice(2);

function answer(value) {
  process.stdout.write(JSON.stringify(value) + '\n');
}

function refuse(error) {
  answer({ error: { message: error.message } });
}

const connection = new TarantoolConnection({
  host,
  port: Number(port),
  username: user || null,
  password: password || null,
  lazyConnect: true,
  retryStrategy: null,
});

const methods = {
  ping: () => connection.ping(),
  insert: (space, row) => connection.insert(space, row),
  replace: (space, row) => connection.replace(space, row),
  update: (space, index, key, operations) => connection.update(space, index, key, operations),
  upsert: (space, row, operations) => connection.upsert(space, operations, row),
  delete: (space, index, key) => connection.delete(space, index, key),
  select: (space, index, key, iterator, limit, offset) =>
    connection.select(space, index, limit, offset, iterator.toLowerCase(), key),
  call: (procedure, args) => connection.call(procedure, ...args),
};

async function serve() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [method, ...args] = JSON.parse(line);
    try {
      answer({ result: await methods[method](...args) });
    } catch (error) {
      refuse(error);
    }
  }
  connection.disconnect();
}

connection.once('error', (error) => {
  refuse(error);
  process.exit(1);
});
connection.connect().then(() => {
  answer({ result: true });
  return serve();
}, refuse);
