import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { createServer as createPlainServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import { test } from 'node:test';
import { run, startServer } from './helpers/server.js';
import { until } from './helpers/until.js';

/** @typedef {import('node:test').TestContext} TestContext */

/** What the command will do, with its own name in front of an error. */
const COMMAND = `
  import { main } from './fleet/requests/requests.js';
  import { exitWith } from './lib/errors.js';
  main(process.argv.slice(1)).catch((error) => exitWith('fleet', error));
`;

/** @param {TestContext} t @param {string[]} args */
const start = (t, ...args) => run(t, process.execPath, ['--input-type=module', '-e', COMMAND, '--', ...args]);

/** @param {TestContext} t @param {string[]} args @returns {Promise<{ code: number | null, stdout: string, stderr: string }>} */
async function requests(t, ...args) {
  const { exit, output } = start(t, ...args);
  return { code: (await exit).code, ...output };
}

/** @param {TestContext} t @param {string[]} args @returns {Promise<import('../fleet/requests/ab.js').Report & { code: number | null }>} */
async function report(t, ...args) {
  const { code, stdout, stderr } = await requests(t, ...args, '--json', '--quiet');
  assert.equal(stderr, '');
  return { code, ...JSON.parse(stdout) };
}

/** @param {Record<string, number>} counts @returns {Record<string, number>} without zeroes */
const some = (counts) => Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0));

/**
 * @param {TestContext} t
 * @param {import('node:net').Server} server
 * @param {string} [host]
 * @returns {Promise<string>} its URL
 */
async function listen(t, server, host = '127.0.0.1') {
  await new Promise((resolve) => server.listen(0, host, () => resolve(null)));
  t.after(() => {
    server.close();
    if ('closeAllConnections' in server)
      /** @type {import('node:http').Server} */ (server).closeAllConnections();
  });
  return `http://${host}:${/** @type {import('node:net').AddressInfo} */ (server.address()).port}/`;
}

/**
 * A server that numbers its requests from 1.
 * @param {TestContext} t
 * @param {(response: import('node:http').ServerResponse, i: number, request: import('node:http').IncomingMessage) => void} answer
 */
async function serve(t, answer) {
  const seen = { count: 0, url: '' };
  const server = createServer((request, response) => answer(response, ++seen.count, request));
  seen.url = await listen(t, server);
  return seen;
}

test('as many requests as were asked for reach the server, and all are reported', async (t) => {
  const seen = await serve(t, (response) => response.setHeader('Server', 'example').end('hello'));
  const { code, stdout } = await requests(t, seen.url, '-c', '7', '-n', '1000');
  assert.equal(seen.count, 1000);
  assert.equal(code, 0);
  assert.match(stdout, /^Server Software: {8}example$/m);
  assert.match(stdout, /^Document Length: {8}5 bytes$/m);
  assert.match(stdout, /^Concurrency Level: {6}7$/m);
  assert.match(stdout, /^Complete requests: {6}1000$/m);
  assert.match(stdout, /^Failed requests: {8}0$/m);
  assert.match(stdout, /^HTML transferred: {7}5000 bytes$/m);
  assert.match(stdout, /^Machine: .*Node v/m);
});

test('there are never more requests at once than connections', async (t) => {
  let all = 0;
  let now = 0;
  let most = 0;
  /** @type {import('node:http').ServerResponse[]} */
  let waiting = [];
  const seen = await serve(t, (response) => {
    most = Math.max(most, ++now);
    waiting.push(response);
    // The first ones are answered once there are three, so that there were three at once.
    if (++all > 20 || waiting.length === 3) {
      const answered = waiting;
      setImmediate(() => {
        now -= answered.length;
        for (const one of answered) one.end();
      });
      waiting = [];
    }
  });
  await report(t, seen.url, '-c', '3', '-n', '200');
  assert.equal(most, 3);
});

test('bytes are counted as the server wrote them', async (t) => {
  const answer = `HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc`;
  const server = createPlainServer((socket) => {
    socket.on('error', () => {});
    socket.on('data', () => socket.write(answer));
  });
  const { result } = await report(t, await listen(t, server), '-n', '50', '-c', '5');
  assert.equal(result.bytes, 50 * answer.length);
  assert.equal(result.bodyBytes, 150);
});

test('a status beyond 2xx and 3xx is listed and fails the run, a redirect does not', async (t) => {
  const seen = await serve(t, (response, i, { url }) => {
    response.statusCode = url === '/moved' ? 302 : i % 4 === 0 ? 404 : 200;
    response.end();
  });
  const bad = await report(t, seen.url, '-n', '100');
  assert.deepEqual(bad.result.statuses, { 200: 75, 404: 25 });
  assert.deepEqual([bad.code, bad.isOk], [1, false]);
  const moved = await report(t, `${seen.url}moved`, '-n', '10');
  assert.deepEqual(moved.result.statuses, { 302: 10 });
  assert.equal(moved.code, 0);
});

test('a request that the server does not answer is a failure, and none goes unaccounted', async (t) => {
  const seen = await serve(t, (response, i) => {
    if (i % 3 === 0) response.socket?.destroy();
    else response.end('hello');
  });
  const { code, result } = await report(t, seen.url, '-n', '300');
  assert.equal(seen.count, 300);
  assert.equal(result.complete, 200);
  const { closed = 0, reset = 0, ...others } = some(result.failed);
  assert.equal(closed + reset, 100);
  assert.deepEqual(others, {});
  assert.equal(code, 1);
});

test('an answer that breaks off is a failure, and leaves nothing to the next', async (t) => {
  const seen = await serve(t, (response, i) => {
    if (i % 2 === 0) return response.end('whole');
    response.writeHead(200, { 'Content-Length': 100 });
    response.write('half', () => response.socket?.end());
  });
  const { result } = await report(t, seen.url, '-n', '60', '-c', '4');
  assert.deepEqual(result.statuses, { 200: 30 });
  assert.deepEqual(some(result.failed), { closed: 30 });
  assert.equal(result.bodyBytes, 30 * 'whole'.length);
});

test('a server that closes after each answer is connected to anew, and loses none', async (t) => {
  const seen = await serve(t, (response) => response.setHeader('Connection', 'close').end('hello'));
  const { code, result } = await report(t, seen.url, '-n', '200');
  assert.equal(seen.count, 200);
  assert.equal(result.complete, 200);
  assert.equal(code, 0);
});

test('an answer without a length ends with its connection', async (t) => {
  const server = createPlainServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => socket.end('HTTP/1.0 200 OK\r\n\r\nhello'));
  });
  const { code, result } = await report(t, await listen(t, server), '-n', '40', '-c', '4');
  assert.equal(result.complete, 40);
  assert.equal(result.bodyBytes, 200);
  assert.equal(code, 0);
});

test('the answer to HEAD has a length and no body', async (t) => {
  const seen = await serve(t, (response) => response.setHeader('Content-Length', 5).end());
  const { result } = await report(t, seen.url, '-n', '40', '-m', 'HEAD');
  assert.deepEqual([result.complete, result.bodyBytes], [40, 0]);
});

test('method, headers and body arrive as they were given', async (t) => {
  /** @type {string[]} */
  const got = [];
  const seen = await serve(t, async (response, _, request) => {
    let body = '';
    for await (const part of request) body += part;
    const { host, 'x-a': a, accept } = request.headers;
    got.push([request.method, request.url, host, a, accept, body].join(' '));
    response.end();
  });
  const url = `${seen.url}path?q=1`;
  await report(
    t,
    url,
    '-n',
    '1',
    '-m',
    'PUT',
    '-H',
    'X-A: one',
    '-H',
    'Accept: text/html',
    '-H',
    'x-a: two',
    '-b',
    'bö',
  );
  await report(t, url, '-n', '1', '-b', 'text', '-H', 'Host: example.org', '-H', 'Accept:');
  const { host } = new URL(url);
  assert.deepEqual(got, [`PUT /path?q=1 ${host} one, two text/html bö`, 'POST /path?q=1 example.org   text']);
});

test('a rate is held by a schedule, not by bursts, and no request is early', async (t) => {
  /** @type {number[]} */
  const arrivals = [];
  const seen = await serve(t, (response) => {
    arrivals.push(Date.now());
    response.end();
  });
  const { result, asked } = await report(t, seen.url, '-c', '4', '--rps', '100', '-d', '2');
  const due = (result.elapsedMs * 100) / 1000;
  assert.ok(Math.abs(result.sent + result.unsent - due) <= 10, `${result.sent} + ${result.unsent} of ${due}`);
  assert.ok(result.complete > due / 2, `${result.complete} of ${due}`);
  assert.equal(asked.rps, 100);
  const startMs = Date.parse(result.startedAt);
  for (const [i, at] of arrivals.entries()) {
    assert.ok(at - startMs >= i * 10 - 100, `request ${i} came ${at - startMs} ms after the start`);
  }
});

test('a stall of the server is charged to all requests that were due in it, and each counts once', async (t) => {
  const STALL_MS = 500;
  let stalled = 0;
  /** @type {Promise<void> | undefined} */
  let stall;
  const seen = await serve(t, (response, i) => {
    if (i === 100)
      stall = new Promise((resolve) => {
        setTimeout(() => {
          stall = undefined;
          resolve();
        }, STALL_MS);
      });
    if (!stall) return response.end();
    stalled++;
    stall.then(() => response.end());
  });
  const { result } = await report(t, seen.url, '-c', '4', '--rps', '100', '-n', '300');
  assert.equal(result.complete, 300);
  assert.equal(result.latencyMs.count, 300);
  // Four met the stall; fifty were due in it, of which thirty waited for more than 200 ms.
  assert.ok(stalled <= 4, `${stalled} met the stall`);
  assert.ok(result.latencyMs.percentiles[90] > 150, `${result.latencyMs.percentiles[90]} ms`);
  assert.ok(result.latencyMs.max >= STALL_MS - 5, `${result.latencyMs.max} ms`);
  assert.ok(result.serviceMs.mean < result.latencyMs.mean);
});

test('a connection that the server ends while it waits for its turn is no failure', async (t) => {
  const seen = await serve(t, (response) => {
    response.on('finish', () => response.socket?.end());
    response.setHeader('Connection', 'keep-alive').end('hello');
  });
  const { code, result } = await report(t, seen.url, '-c', '1', '--rps', '2', '-n', '4');
  assert.deepEqual([result.complete, some(result.failed), code], [4, {}, 0]);
});

test('a connection that waits for its turn for longer than an answer may take is kept', async (t) => {
  let connections = 0;
  const server = createServer((_, response) => response.end()).on('connection', () => connections++);
  const url = await listen(t, server);
  const { result } = await report(t, url, '-c', '4', '--rps', '3', '-n', '8', '-t', '1');
  assert.deepEqual([result.complete, connections], [8, 4]);
});

test('it ends with its duration, and says what was on its way then', async (t) => {
  const seen = await serve(t, (response, i) => i <= 20 && response.end());
  const { result, code, notes } = await report(t, seen.url, '-c', '5', '-d', '1', '-t', '60');
  assert.deepEqual([result.end, result.complete, result.inFlight], ['duration', 20, 5]);
  assert.match(notes.join('\n'), /5 requests were on their way/);
  assert.equal(code, 0);
});

test('streams are told from routes that answer, in place of a wait without end', async (t) => {
  const server = await startServer(t);
  const { code, stdout } = await requests(
    t,
    `http://127.0.0.1:${server.port}/`,
    '-n',
    '100000',
    '-c',
    '4',
    '-t',
    '1',
  );
  assert.equal(code, 1);
  assert.match(stdout, /^Failed requests: {8}4\n {3}\(timeout: 4\)$/m);
  assert.match(stdout, /4 answers began and did not end within 1 s\. .*`node fleet\/cli\.js run`/);
});

test('where nobody listens it ends at once', async (t) => {
  const server = createServer();
  const url = await listen(t, server);
  await new Promise((resolve) => server.close(resolve));
  const { code, result } = await report(t, url, '-n', '1000000', '-c', '5');
  assert.deepEqual([result.end, some(result.failed), code], ['unanswered', { refused: 5 }, 1]);
  assert.match(result.lastError, /ECONNREFUSED/);
});

test('what is no HTTP is a failure of its own', async (t) => {
  const server = createPlainServer((socket) => socket.on('error', () => {}).write('SSH-2.0-other\r\n'));
  const { code, result } = await report(t, await listen(t, server), '-n', '1000', '-c', '3');
  assert.deepEqual([some(result.failed), code], [{ unexpected: 3 }, 1]);
});

test('the JSON says what was asked for and what was measured, and names no password', async (t) => {
  const seen = await serve(t, (response) => response.end('hello'));
  const given = seen.url.replace('http://', 'http://someone:secret@');
  const { asked, result, latencyFrom, isOk, machine } = await report(t, given, '-n', '20', '-c', '2');
  assert.deepEqual(asked, {
    url: seen.url,
    method: 'GET',
    concurrency: 2,
    requests: 20,
    durationMs: null,
    rps: null,
    timeoutMs: 10_000,
  });
  assert.deepEqual([result.complete, latencyFrom, isOk], [20, 'sent', true]);
  assert.ok(result.requestsPerSecond > 0 && result.latencyMs.percentiles[100] === result.latencyMs.max);
  assert.match(machine, /Node v/);
});

test('each second says on stderr how it goes, without escape codes where that is no terminal', async (t) => {
  const seen = await serve(t, (response) => response.end());
  const { stderr, stdout } = await requests(t, seen.url, '--rps', '20', '-d', '3');
  assert.match(stderr, /^requests: \d+ answered, \d+ in the last second, failed 0\n/);
  assert.ok(!(stderr + stdout).includes('\x1b') && !stderr.includes('\r'));
});

test('Ctrl-C ends it, and what was measured until then is printed', async (t) => {
  const seen = await serve(t, (response) => response.end());
  const { child, exit, output } = start(t, seen.url, '-n', '1000000000', '--quiet');
  await until(() => seen.count > 100, 'requests come');
  child.kill('SIGINT');
  assert.deepEqual(await exit, { code: 130, signal: null });
  assert.match(output.stdout, /^Complete requests: {6}[1-9]\d*$/m);
  assert.match(output.stdout, /It was stopped/);
});

test('what can not be loaded is said in one line', async (t) => {
  const lineOf = async (/** @type {string[]} */ ...args) => {
    const { code, stdout, stderr } = await requests(t, ...args);
    assert.deepEqual([code, stdout], [1, '']);
    return stderr;
  };
  assert.match(await lineOf(), /^fleet: requests got no URL: expected one such as http.*\n$/);
  assert.match(
    await lineOf('ftp://localhost/'),
    /^fleet: requests got 'ftp:\/\/localhost\/': expected .*\n$/,
  );
  assert.match(await lineOf('localhost', 'other'), /^fleet: unexpected argument 'other'.*\n$/);
  assert.match(await lineOf('localhost', '-n', 'x'), /^fleet: -n got 'x': expected a whole number.*\n$/);
  assert.match(await lineOf('localhost', '-H', 'none'), /^fleet: -H got 'none': expected a header.*\n$/);
  assert.match(await lineOf('localhost', '-H', 'A: b\r\nC: d'), /^fleet: -H got .*expected a header.*/);
  assert.match(await lineOf('http://nowhere.invalid/'), /^fleet: 'nowhere\.invalid' is not known here.*\n$/);
  assert.match(await lineOf('https://192.0.2.1/'), /^fleet: https:\/\/192\.0\.2\.1 is not dialled: .*\n$/);
});

const elsewhere = Object.values(networkInterfaces())
  .flatMap((some) => some ?? [])
  .find(({ internal, family }) => !internal && family === 'IPv4')?.address;

test('beyond loopback only a server that consents is loaded', {
  skip: !elsewhere && 'no other address',
}, async (t) => {
  const seen = { consents: false, asked: 0, loaded: 0 };
  const server = createServer(({ url }, response) => {
    const isQuestion = url === '/.well-known/holdfast-load';
    if (isQuestion) seen.asked++;
    else seen.loaded++;
    response.end(JSON.stringify({ consent: seen.consents }));
  });
  const url = await listen(t, server, elsewhere);
  const refused = await requests(t, url, '-n', '10');
  assert.match(refused.stderr, /^fleet: .* is not dialled: .*\n$/);
  assert.deepEqual([refused.code, seen.asked, seen.loaded], [1, 1, 0]);
  seen.consents = true;
  assert.equal((await report(t, url, '-n', '10')).result.complete, 10);
  assert.deepEqual([seen.asked, seen.loaded], [2, 10]);
});

test('the help has a line for every option', async (t) => {
  const { code, stdout } = await requests(t, '--help');
  assert.equal(code, 0);
  assert.match(stdout, /^Usage: node fleet\/cli\.js requests URL/);
  for (const name of [
    '-c, --concurrency',
    '-n, --requests',
    '-d, --duration',
    '--rps',
    "-H, --header 'NAME: VALUE'",
  ])
    assert.ok(stdout.includes(`  ${name} `), name);
});
