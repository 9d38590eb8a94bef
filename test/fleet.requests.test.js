import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { createServer as createPlainServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import { test } from 'node:test';
import { makeCertificate } from './helpers/certificates.js';
import { run, startServer } from './helpers/server.js';
import { until } from './helpers/until.js';

/** @typedef {import('node:test').TestContext} TestContext */

/** @param {TestContext} t @param {string[]} args */
const start = (t, ...args) => run(t, process.execPath, ['fleet/cli.js', 'requests', ...args]);

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
const nonZero = (counts) => Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0));

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
 * Starts a server that numbers its requests from 1.
 * @param {TestContext} t
 * @param {(response: import('node:http').ServerResponse, i: number, request: import('node:http').IncomingMessage) => void} answer
 */
async function serve(t, answer) {
  const seen = { count: 0, url: '' };
  const server = createServer((request, response) => answer(response, ++seen.count, request));
  seen.url = await listen(t, server);
  return seen;
}

test('sends as many requests as asked for, and reports all of them', async (t) => {
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

test('never has more requests in flight than connections', async (t) => {
  let all = 0;
  let now = 0;
  let most = 0;
  /** @type {import('node:http').ServerResponse[]} */
  let waiting = [];
  const seen = await serve(t, (response) => {
    most = Math.max(most, ++now);
    waiting.push(response);
    // The first ones are answered in threes, so that three are in flight at once.
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

test('counts every byte the server wrote', async (t) => {
  const answer = `HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc`;
  const server = createPlainServer((socket) => {
    socket.on('error', () => {});
    socket.on('data', () => socket.write(answer));
  });
  const { result } = await report(t, await listen(t, server), '-n', '50', '-c', '5');
  assert.equal(result.bytes, 50 * answer.length);
  assert.equal(result.bodyBytes, 150);
});

test('a status other than 2xx and 3xx is listed and fails the run, a redirect does not', async (t) => {
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

test('a request without an answer is a failure, and every request is accounted for', async (t) => {
  const seen = await serve(t, (response, i) => {
    if (i % 3 === 0) response.socket?.destroy();
    else response.end('hello');
  });
  const { code, result } = await report(t, seen.url, '-n', '300');
  assert.equal(seen.count, 300);
  assert.equal(result.complete, 200);
  const { closed = 0, reset = 0, ...others } = nonZero(result.failed);
  assert.equal(closed + reset, 100);
  assert.deepEqual(others, {});
  assert.equal(code, 1);
});

test('an answer that breaks off is a failure and does not disturb the next one', async (t) => {
  const seen = await serve(t, (response, i) => {
    if (i % 2 === 0) return response.end('whole');
    response.writeHead(200, { 'Content-Length': 100 });
    response.write('half', () => response.socket?.end());
  });
  const { result } = await report(t, seen.url, '-n', '60', '-c', '4');
  assert.deepEqual(result.statuses, { 200: 30 });
  assert.deepEqual(nonZero(result.failed), { closed: 30 });
  assert.equal(result.bodyBytes, 30 * 'whole'.length);
});

test('reconnects to a server that closes after each answer, without failures', async (t) => {
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

test('a chunked answer that breaks off is a failure, even if the server said it would close', async (t) => {
  const head = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n';
  const server = createPlainServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => socket.end(`${head}5\r\nhello\r\n`));
  });
  const { result } = await report(t, await listen(t, server), '-n', '10', '-c', '2');
  assert.deepEqual([result.complete, nonZero(result.failed)], [0, { closed: 2 }]);
});

test('a deadline counts for the whole answer, even if the server keeps sending', async (t) => {
  const seen = await serve(t, (response, i) => {
    if (i > 2) return response.end();
    const timer = setInterval(() => response.write('x'), 50);
    response.on('close', () => clearInterval(timer));
  });
  const { result } = await report(t, seen.url, '-n', '10', '-c', '3', '-t', '1');
  assert.deepEqual([result.complete, nonZero(result.failed), result.endless], [8, { timeout: 2 }, 2]);
});

test('https on loopback is loaded without checking the certificate', {
  skip: spawnSync('openssl', ['version']).error && 'openssl is missing',
}, async (t) => {
  const server = createTlsServer(makeCertificate(t).read(), (_, response) => response.end('hello'));
  const url = (await listen(t, server)).replace('http:', 'https:');
  const { result, code } = await report(t, url, '-n', '40', '-c', '4');
  assert.deepEqual([result.complete, result.bodyBytes, code], [40, 200, 0]);
  const byName = await report(t, url.replace('127.0.0.1', 'localhost'), '-n', '4', '-c', '2');
  assert.equal(byName.result.complete, 4);
});

test('user and password of the URL are sent as basic authentication', async (t) => {
  /** @type {(string | undefined)[]} */
  const got = [];
  const seen = await serve(t, (response, _, { headers }) => {
    got.push(headers.authorization);
    response.end();
  });
  await report(t, seen.url.replace('http://', 'http://someone:s%20t@'), '-n', '1');
  assert.deepEqual(got, [`Basic ${Buffer.from('someone:s t').toString('base64')}`]);
});

test('the answer to HEAD has no body, whatever its length says, and the connection is kept', async (t) => {
  let connections = 0;
  const server = createServer((_, response) => response.setHeader('Content-Length', 5).end());
  server.on('connection', () => connections++);
  const { result } = await report(t, await listen(t, server), '-n', '40', '-c', '2', '-m', 'HEAD');
  assert.deepEqual([result.complete, result.bodyBytes, connections], [40, 0, 2]);
});

test('method, headers and body arrive as given', async (t) => {
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

test('a rate is a schedule, not bursts, and no request is early', async (t) => {
  /** @type {number[]} */
  const arrivals = [];
  const seen = await serve(t, (response) => {
    arrivals.push(Date.now());
    response.end();
  });
  const { result, asked } = await report(t, seen.url, '-c', '4', '--rps', '100', '-d', '2');
  const due = (result.elapsedMs * 100) / 1000;
  assert.ok(Math.abs(result.sent + result.unsent - due) <= 10, `${result.sent} + ${result.unsent} of ${due}`);
  assert.ok(result.complete > 0);
  assert.equal(asked.rps, 100);
  const startMs = Date.parse(result.startedAt);
  for (const [i, at] of arrivals.entries()) {
    assert.ok(at - startMs >= i * 10 - 100, `request ${i} came ${at - startMs} ms after the start`);
  }
});

test('a stall of the server counts for all requests that were due during it, once each', async (t) => {
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
  // Four requests met the stall; fifty were due during it, and thirty of these waited for more than 200 ms.
  assert.ok(stalled <= 4, `${stalled} met the stall`);
  assert.ok(result.latencyMs.percentiles[90] > 150, `${result.latencyMs.percentiles[90]} ms`);
  assert.ok(result.latencyMs.max >= STALL_MS - 5, `${result.latencyMs.max} ms`);
  assert.ok(result.serviceMs.mean < result.latencyMs.mean);
});

test('a connection that the server closes while it is idle is not a failure', async (t) => {
  const seen = await serve(t, (response) => {
    response.on('finish', () => response.socket?.end());
    response.setHeader('Connection', 'keep-alive').end('hello');
  });
  const { code, result } = await report(t, seen.url, '-c', '1', '--rps', '2', '-n', '4');
  assert.deepEqual([result.complete, nonZero(result.failed), code], [4, {}, 0]);
});

test('an idle connection is kept for longer than an answer may take', async (t) => {
  let connections = 0;
  const server = createServer((_, response) => response.end()).on('connection', () => connections++);
  const url = await listen(t, server);
  const { result } = await report(t, url, '-c', '4', '--rps', '3', '-n', '8', '-t', '1');
  assert.deepEqual([result.complete, connections], [8, 4]);
});

test('ends after its duration, and reports what was in flight then', async (t) => {
  const seen = await serve(t, (response, i) => i <= 20 && response.end());
  const { result, code, notes } = await report(t, seen.url, '-c', '5', '-d', '1', '-t', '60');
  assert.deepEqual([result.end, result.complete, result.inFlight], ['duration', 20, 5]);
  assert.match(notes.join('\n'), /5 requests were in flight/);
  assert.equal(code, 0);
});

test('a stream is recognised as one instead of waiting for its end forever', async (t) => {
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
  assert.match(stdout, /4 answers began but did not end within 1 s\. .*`node fleet\/cli\.js run`/);
});

test('ends at once if nobody listens', async (t) => {
  const server = createServer();
  const url = await listen(t, server);
  await new Promise((resolve) => server.close(resolve));
  const { code, result } = await report(t, url, '-n', '1000000', '-c', '5');
  assert.deepEqual([result.end, nonZero(result.failed), code], ['unanswered', { refused: 5 }, 1]);
  assert.match(result.lastError, /ECONNREFUSED/);
});

test('an answer that is not HTTP has a cause of its own', async (t) => {
  const server = createPlainServer((socket) => socket.on('error', () => {}).write('SSH-2.0-other\r\n'));
  const { code, result } = await report(t, await listen(t, server), '-n', '1000', '-c', '3');
  assert.deepEqual([nonZero(result.failed), code], [{ unexpected: 3 }, 1]);
});

test('the JSON contains what was asked for and what was measured, but no password', async (t) => {
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

test('reports progress on stderr each second, without escape codes outside a terminal', async (t) => {
  const seen = await serve(t, (response) => response.end());
  const { stderr, stdout } = await requests(t, seen.url, '--rps', '20', '-d', '3');
  assert.match(stderr, /^requests: \d+ answered, \d+ in the last second, failed 0\n/);
  assert.ok(!(stderr + stdout).includes('\x1b') && !stderr.includes('\r'));
});

test('Ctrl-C ends the run and prints what was measured until then', async (t) => {
  const seen = await serve(t, (response) => response.end());
  const { child, exit, output } = start(t, seen.url, '-n', '1000000000', '--quiet');
  await until(() => seen.count > 100, 'requests come');
  child.kill('SIGINT');
  assert.deepEqual(await exit, { code: 130, signal: null });
  assert.match(output.stdout, /^Complete requests: {6}[1-9]\d*$/m);
  assert.match(output.stdout, /The run was stopped/);
});

test('every mistake is reported in one line', async (t) => {
  const lineOf = async (/** @type {string[]} */ ...args) => {
    const { code, stdout, stderr } = await requests(t, ...args);
    assert.deepEqual([code, stdout], [1, '']);
    return stderr;
  };
  assert.match(await lineOf(), /^fleet: requests got no URL: expected a URL such as http.*\n$/);
  assert.match(
    await lineOf('ftp://localhost/'),
    /^fleet: requests got 'ftp:\/\/localhost\/': expected .*\n$/,
  );
  assert.match(await lineOf('localhost', 'other'), /^fleet: unexpected argument 'other'.*\n$/);
  assert.match(await lineOf('localhost', '-n', 'x'), /^fleet: -n got 'x': expected a whole number.*\n$/);
  assert.match(await lineOf('localhost', '-H', 'none'), /^fleet: -H got 'none': expected a header.*\n$/);
  assert.match(await lineOf('localhost', '-H', 'A: b\r\nC: d'), /^fleet: -H got .*expected a header.*/);
  assert.match(
    await lineOf('localhost', '-H', 'Upgrade: x'),
    /^fleet: -H got 'Upgrade': the HTTP client .*\n$/,
  );
  assert.match(await lineOf('http://nowhere.invalid/'), /^fleet: unknown host 'nowhere\.invalid' .*\n$/);
});

const elsewhere = Object.values(networkInterfaces())
  .flatMap((some) => some ?? [])
  .find(({ internal, family }) => !internal && family === 'IPv4')?.address;

for (const scheme of ['http', 'https']) {
  const hasOpenssl = scheme === 'http' || spawnSync('openssl', ['version']).status === 0;
  const lacking = elsewhere ? 'openssl is missing' : 'this machine has no other address';
  test(`beyond loopback, only a server that consents is loaded with ${scheme}`, {
    skip: !(elsewhere && hasOpenssl) && lacking,
  }, async (t) => {
    const seen = { consents: false, asked: 0, loaded: 0 };
    /** @type {import('node:http').RequestListener} */
    const onRequest = ({ url }, response) => {
      const isQuestion = url === '/.well-known/holdfast-load';
      if (isQuestion) seen.asked++;
      else seen.loaded++;
      response.end(JSON.stringify({ consent: seen.consents }));
    };
    const isPlain = scheme === 'http';
    const server = isPlain ? createServer(onRequest) : createTlsServer(makeCertificate(t).read(), onRequest);
    const url = (await listen(t, server, elsewhere)).replace('http:', `${scheme}:`);
    const refused = await requests(t, url, '-n', '10');
    assert.match(refused.stderr, /^fleet: refusing to load .*\n$/);
    assert.deepEqual([refused.code, seen.asked, seen.loaded], [1, 1, 0]);
    seen.consents = true;
    assert.equal((await report(t, url, '-n', '10')).result.complete, 10);
    assert.deepEqual([seen.asked, seen.loaded], [2, 10]);
  });
}

test('the help lists every option', async (t) => {
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
