// The calls of clients/README.md made by grpc-js.
//
//   node client.js ADDRESS PROTO-FOLDER [-ca FILE -cert FILE -key FILE] [-hold N | -loop SECONDS]
'use strict';
const fs = require('fs');
const path = require('path');
const modules = process.env.CLIENT_MODULES;
const grpc = require(path.join(modules, '@grpc/grpc-js'));
const loader = require(path.join(modules, '@grpc/proto-loader'));

const [address, protos, ...rest] = process.argv.slice(2);
const flags = {};
for (let i = 0; i + 1 < rest.length; i += 2) flags[rest[i]] = rest[i + 1];

const load = (name) => grpc.loadPackageDefinition(loader.loadSync(path.join(protos, name), {
  keepCase: true, longs: Number, enums: Number, defaults: true, includeDirs: [protos] }));
const read = (file) => (file ? fs.readFileSync(file) : null);
const credentials = flags['-ca']
  ? grpc.credentials.createSsl(read(flags['-ca']), read(flags['-key']), read(flags['-cert']))
  : grpc.credentials.createInsecure();
const options = { 'grpc.enable_http_proxy': 0 };
const Scaler = load('externalscaler.proto').externalscaler.ExternalScaler;
const Health = load('health.proto').grpc.health.v1.Health;
const scaler = new Scaler(address, credentials, options);
const health = new Health(address, credentials, options);

const ref = (pairs) => ({ name: 'workload', namespace: 'default', scalerMetadata: pairs || {} });
const soon = () => ({ deadline: Date.now() + 30000 });
const code = grpc.status;

function check(isRight, text) {
  if (!isRight) throw new Error(text);
}

function call(client, method, request, callOptions, metadata) {
  return new Promise((resolve, reject) => {
    client[method](request, metadata || new grpc.Metadata(), callOptions || soon(),
      (error, answer) => (error ? reject(error) : resolve(answer)));
  });
}

async function refused(promise, wanted, ...words) {
  let error = null;
  await promise.catch((e) => { error = e; });
  check(error, 'the call succeeded');
  check(error.code === wanted, `want ${code[wanted]}, got ${error.code}: ${error.details}`);
  for (const word of words) check(error.details.includes(word), `no ${word} in ${error.details}`);
}

// A stream as promises: next() gives a message or null at a clean end, or throws its status.
function open(client, method, request, callOptions) {
  const stream = client[method](request, new grpc.Metadata(), callOptions || {});
  const queue = [];
  let waiting = null;
  const put = (item) => (waiting ? (waiting(item), (waiting = null)) : queue.push(item));
  stream.on('data', (message) => put({ message }));
  stream.on('error', (error) => put({ error }));
  stream.on('end', () => put({ message: null }));
  return {
    stream,
    async next() {
      const item = queue.length ? queue.shift() : await new Promise((resolve) => { waiting = resolve; });
      if (item.error) throw item.error;
      return item.message;
    },
  };
}

async function unary() {
  const answer = await call(scaler, 'GetMetrics', { scaledObjectRef: ref() });
  const [one] = answer.metricValues;
  check(answer.metricValues.length === 1 && one.metricValue === 60 && one.metricValueFloat === 60, JSON.stringify(answer));
}

// A method that sends bytes as they are.
function raw(method, bytes) {
  return new Promise((resolve, reject) => {
    scaler.makeUnaryRequest(method, (x) => x, (x) => x, bytes, new grpc.Metadata(), soon(),
      (error, answer) => (error ? reject(error) : resolve(answer)));
  });
}

const cases = {
  'unary call': unary,
  async 'spec with both fields'() {
    const answer = await call(scaler, 'GetMetricSpec', ref({ targetValue: '42.25' }));
    const [one] = answer.metricSpecs;
    check(one.targetSize === 42 && one.targetSizeFloat === 42.25, JSON.stringify(answer));
  },
  async IsActive() {
    check((await call(scaler, 'IsActive', ref())).result === true, 'not active');
  },
  async 'StreamIsActive, cancelled'() {
    const stream = open(scaler, 'StreamIsActive', ref());
    check((await stream.next()).result === true, 'no true at once');
    stream.stream.cancel();
    await refused(stream.next(), code.CANCELLED);
  },
  async StreamMetricSpec() {
    const stream = open(scaler, 'StreamMetricSpec', ref());
    check((await stream.next()).metricSpecs.length === 1, 'no spec at once');
    stream.stream.cancel();
  },
  async 'deadline of a stream'() {
    const stream = open(scaler, 'StreamIsActive', ref(), { deadline: Date.now() + 300 });
    await stream.next();
    await refused(stream.next(), code.DEADLINE_EXCEEDED);
  },
  async '50 streams cancelled at once'() {
    const streams = [];
    for (let i = 0; i < 50; i++) streams.push(open(scaler, 'StreamIsActive', ref()));
    for (const stream of streams) await stream.next();
    for (const stream of streams) stream.stream.cancel();
    await unary();
  },
  async '5 MB message'() {
    const pairs = { podSelector: 'x'.repeat(5000000) };
    await refused(call(scaler, 'GetMetrics', { scaledObjectRef: ref(pairs) }), code.RESOURCE_EXHAUSTED);
  },
  async '60 kB message'() {
    const pairs = { podSelector: 'x'.repeat(60000) };
    await refused(call(scaler, 'GetMetrics', { scaledObjectRef: ref(pairs) }), code.INVALID_ARGUMENT, 'podSelector');
  },
  async 'malformed messages'() {
    for (const bytes of [[0xff, 0xff, 0xff], [0x0a, 0x7f], [0x08, 0x01, 0x0a]]) {
      await refused(raw('/externalscaler.ExternalScaler/GetMetrics', Buffer.from(bytes)), code.INTERNAL);
    }
    await unary();
  },
  async 'unknown methods'() {
    for (const method of ['/externalscaler.ExternalScaler/Nope', '/no.Such/Service', '/x']) {
      await refused(raw(method, Buffer.alloc(0)), code.UNIMPLEMENTED);
    }
  },
  async 'gzip request'() {
    const zipped = new Scaler(address, credentials, { ...options, 'grpc.default_compression_algorithm': 2 });
    await refused(call(zipped, 'GetMetrics', { scaledObjectRef: ref() }), code.UNIMPLEMENTED);
    zipped.close();
  },
  async 'UTF-8 error text'() {
    await refused(call(scaler, 'GetMetrics', { scaledObjectRef: ref({ aggregation: 'médiane 中 100%' }) }),
      code.INVALID_ARGUMENT, 'médiane 中 100%');
  },
  async '500 parallel calls'() {
    await Promise.all(Array.from({ length: 500 }, unary));
  },
  async 'binary metadata'() {
    const metadata = new grpc.Metadata();
    metadata.add('x-trace-bin', Buffer.from([0, 255, 1]));
    metadata.add('x-plain', 'a, b');
    metadata.add('x-plain', 'c');
    await call(scaler, 'IsActive', ref(), soon(), metadata);
  },
  async 'health: Check, List, Watch'() {
    check((await call(health, 'Check', {})).status === 1, 'Check says something else');
    await refused(call(health, 'Check', { service: 'no.such.Service' }), code.NOT_FOUND);
    check(Object.keys((await call(health, 'List', {})).statuses).length >= 3, 'List is short');
    const watch = open(health, 'Watch', { service: 'no.such.Service' });
    check((await watch.next()).status === 3, 'Watch of an unknown service');
    watch.stream.cancel();
    await watch.next().catch(() => {});
  },
};

async function hold(n) {
  const streams = [];
  for (let i = 0; i < n; i++) streams.push(open(scaler, 'StreamIsActive', ref()));
  for (const stream of streams) await stream.next();
  console.log('opened');
  for (const stream of streams) {
    let ended = 'OK';
    try {
      while ((await stream.next()) !== null);
    } catch (error) {
      ended = code[error.code];
    }
    console.log('ended', ended);
  }
}

async function loop(seconds) {
  let calls = 0, failures = 0;
  for (const end = Date.now() + seconds * 1000; Date.now() < end; calls++) {
    await unary().catch((error) => { failures++; console.log('failure', error.message); });
    await new Promise((resolve) => { setTimeout(resolve, 5); });
  }
  console.log('calls', calls, 'failures', failures);
}

async function main() {
  if (flags['-hold']) await hold(Number(flags['-hold']));
  else if (flags['-loop']) await loop(Number(flags['-loop']));
  else {
    for (const [name, run] of Object.entries(cases)) {
      try {
        await run();
        console.log('ok  ', name);
      } catch (error) {
        console.log(`FAIL ${name}: ${error.message}`);
      }
    }
  }
  process.exit(0);
}
main();
