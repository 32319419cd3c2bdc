// Carries out requests, read as lines of JSON, with tarantool-driver. See bridge.py for the lines.
// Usage: node bridge.js
'use strict';

const readline = require('readline');
const TarantoolConnection = require('tarantool-driver');

function answer(value) {
  process.stdout.write(JSON.stringify(value) + '\n');
}

function refuse(error) {
  answer({ error: { message: error.message } });
}

// One connection after the other: `connect`, requests, `disconnect`.
let connection;

async function connect(host, port, user, password) {
  connection = new TarantoolConnection({
    host,
    port: Number(port),
    username: user || null,
    password: password || null,
    lazyConnect: true,
    retryStrategy: null,
  });
  const failure = new Promise((resolve, reject) => connection.once('error', reject));
  await Promise.race([connection.connect(), failure]);
  return true;
}

const methods = {
  connect,
  disconnect: () => {
    connection.disconnect();
    return true;
  },
  ping: () => connection.ping(),
  insert: (space, row) => connection.insert(space, row),
  replace: (space, row) => connection.replace(space, row),
  update: (space, index, key, operations) => connection.update(space, index, key, operations),
  upsert: (space, row, operations) => connection.upsert(space, operations, row),
  delete: (space, index, key) => connection.delete(space, index, key),
  select: (space, index, key, iterator, limit, offset) =>
    connection.select(space, index, limit, offset, iterator.toLowerCase(), key),
  call: (procedure, args) => connection.call(procedure, ...args),
  eval: (expression) => connection.eval(expression),
  sql: (statement) => connection.sql(statement),
  // Inserts rows with one write, and answers the error's text or the row of each.
  pipeline: async (space, rows) => {
    const pipeline = connection.pipeline();
    rows.forEach((row) => pipeline.insert(space, row));
    const answers = await pipeline.exec();
    return answers.map(([error, answer]) => (error ? error.message : answer[0]));
  },
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
}

serve();
