/*
 * nginx and HAProxy with the configurations of docs/deploy, in front of real servers.
 */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { connect } from 'node:http2';
import { join } from 'node:path';
import { test } from 'node:test';
import { EventSource } from 'eventsource';
import { WebSocket } from 'ws';
import { NEEDS_CHROMIUM, startBrowser } from './helpers/browser.js';
import {
  configurationOf,
  fetchTrusting,
  makeNodeCertificate,
  missing,
  PROXIES,
  untilListens,
} from './helpers/deploy.js';
import { legacyToken, PATH, SECRET } from './helpers/hub.js';
import { natsBinaries, startNats } from './helpers/nats.js';
import { quietPort } from './helpers/port.js';
import { run, startServer, temporaryFolder } from './helpers/server.js';
import { until } from './helpers/until.js';

/** @typedef {import('node:test').TestContext} TestContext */

const HUB = ['--jwt-secret', SECRET, '--workers', '1', '--ping-interval', '500'];
/** Streams of one client. With HTTP/1.1, a browser opens at most six to a host. */
const MANY = 20;
const SUBSCRIBER = legacyToken({ subscribe: ['*'] });
const PUBLISHER = legacyToken({ publish: ['*'] });
const [{ path: natsPath, problem: noNats }] = await natsBinaries();

/**
 * @param {TestContext} t @param {string} proxy @param {number} count of nodes @param {string[]} options
 * @returns a proxy in front of servers
 */
async function startBehind(t, proxy, count, options) {
  const certificate = makeNodeCertificate(t);
  const { isTls, start } = PROXIES[proxy];
  const own = isTls ? ['--tls-cert', certificate.cert, '--tls-key', certificate.key] : [];
  const servers = await Promise.all(
    Array.from({ length: count }, () => startServer(t, [...HUB, ...options, ...own])),
  );
  const port = await quietPort();
  const nodes = servers.map((server) => ({ port: server.port, readyPort: server.adminPort }));
  const started = start(t, { port, certificate, nodes });
  const fetch = fetchTrusting(t);
  const url = `https://127.0.0.1:${port}${PATH}`;
  await untilListens(started, () => fetch(url).then((answer) => answer.text()));
  return { servers, url, fetch, port };
}

/** @param {Awaited<ReturnType<typeof startBehind>>} behind @param {string} data @param {string} [token] */
async function publish({ url, fetch }, data, token = PUBLISHER) {
  const body = new URLSearchParams({ topic: 'news', data, id: `urn:${data}` }).toString();
  const headers = {
    'Content-Type': 'application/x-www-form-urlencoded',
    ...(token ? { Authorization: `Bearer ${token}` } : {}),
  };
  const answer = await fetch(url, { method: 'POST', body, headers });
  await answer.text();
  return answer.status;
}

/** @param {import('node:http2').ClientHttp2Session} session */
function openStream(session) {
  const seen = { status: 0, text: '', problem: '' };
  const stream = session.request({ ':path': `${PATH}?topic=news`, authorization: `Bearer ${SUBSCRIBER}` });
  stream.on('response', (headers) => {
    seen.status = headers[':status'] ?? 0;
  });
  stream.on('error', ({ message }) => {
    seen.problem = message; // also when the servers end, after the test
  });
  stream.setEncoding('utf8').on('data', (text) => {
    seen.text += text;
  });
  return { stream, seen };
}

/** Publishes until it is accepted, always with the same id. @param {Awaited<ReturnType<typeof startBehind>>} behind @param {string} data */
function publishSurely(behind, data) {
  return until(async () => (await publish(behind, data).catch(() => 0)) === 200, `${data} is published`);
}

/** @param {TestContext} t @param {Awaited<ReturnType<typeof startBehind>>} behind @returns a client that reconnects by itself */
function subscribe(t, { url, fetch }) {
  /** @type {string[]} */
  const got = [];
  /** @type {(string | null)[]} */
  const cursors = [];
  const source = new EventSource(`${url}?topic=news`, {
    fetch: (/** @type {any} */ address, /** @type {any} */ init) => {
      cursors.push(init.headers['Last-Event-ID'] ?? null);
      return fetch(address, { ...init, headers: { ...init.headers, Authorization: `Bearer ${SUBSCRIBER}` } });
    },
  });
  t.after(() => source.close());
  source.addEventListener('message', ({ data }) => got.push(data));
  return { got, cursors, untilOpen: () => until(() => source.readyState === 1, 'it is open') };
}

for (const [proxy, { program }] of Object.entries(PROXIES)) {
  const skip = missing(program);

  test(`${proxy}: a publication goes through to a stream at once, and pings keep it open`, {
    skip,
  }, async (t) => {
    const behind = await startBehind(t, proxy, 1, []);
    const { got, untilOpen } = subscribe(t, behind);
    await untilOpen();
    const begunMs = performance.now();
    assert.equal(await publish(behind, 'one'), 200);
    await until(() => got.length === 1, 'it arrives');
    assert.ok(performance.now() - begunMs < 2000);
    const pinged = await behind.servers[0].untilTotals(({ pings }) => pings >= 3, 'pings');
    assert.equal(pinged.streams, 1);
    assert.equal(await publish(behind, 'two'), 200);
    await until(() => got.length === 2, 'the stream is still open');
  });

  test(`${proxy}: its clients are not taken for programs on its machine`, { skip }, async (t) => {
    const behind = await startBehind(t, proxy, 1, []);
    assert.equal(await publish(behind, 'one', ''), 401);
    const answer = await behind.fetch(`${behind.url}?topic=news`);
    await answer.text();
    assert.equal(answer.status, 401);
  });

  test(`${proxy}: curl with HTTP/2 gets each publication at once`, {
    skip: skip || missing('curl'),
  }, async (t) => {
    const behind = await startBehind(t, proxy, 1, []);
    const words = ['--silent', '--no-buffer', '--include', '--insecure', '--http2', '--header'];
    const { output } = run(t, 'curl', [
      ...words,
      `Authorization: Bearer ${SUBSCRIBER}`,
      `${behind.url}?topic=news`,
    ]);
    const untilGot = (/** @type {string} */ text) =>
      until(
        () => output.stdout.includes(text),
        () => `${text}: ${output.stdout}${output.stderr}`,
      );
    await untilGot('HTTP/2 200');
    await behind.servers[0].untilTotals(({ streams }) => streams === 1, 'the stream');
    for (const data of ['one', 'two', 'three']) {
      assert.equal(await publish(behind, data), 200);
      await untilGot(`data: ${data}\n`); // before the next one: nothing waits for a buffer to be full
    }
  });

  test(`${proxy}: a connection with HTTP/2 has many streams, and each ends by itself`, {
    skip,
  }, async (t) => {
    const behind = await startBehind(t, proxy, 1, []);
    const session = connect(behind.url, { rejectUnauthorized: false });
    t.after(() => session.destroy());
    const streams = Array.from({ length: MANY }, () => openStream(session));
    await until(() => streams.every(({ seen }) => seen.status === 200), 'all are open');
    assert.equal(await publish(behind, 'one'), 200);
    await until(() => streams.every(({ seen }) => seen.text.includes('data: one\n')), 'all get it');
    const { length } = streams.splice(0, MANY / 2).map(({ stream }) => stream.close());
    await behind.servers[0].untilTotals((totals) => totals.streams === MANY - length, 'half are left');
    assert.equal(await publish(behind, 'two'), 200);
    await until(() => streams.every(({ seen }) => seen.text.includes('data: two\n')), 'the others go on');
    assert.deepEqual([session.closed, ...new Set(streams.map(({ seen }) => seen.problem))], [false, '']);
  });

  test(`${proxy}: WebSockets, lines of JSON and polls go through`, { skip }, async (t) => {
    const behind = await startBehind(t, proxy, 1, ['--subscriptions']);
    const token = legacyToken({ subscribe: ['*'], publish: ['*'] });
    const headers = { Authorization: `Bearer ${token}` };
    const socket = new WebSocket(`${behind.url.replace('https', 'wss')}?topic=news`, {
      headers,
      rejectUnauthorized: false,
    });
    t.after(() => socket.terminate());
    /** @type {Record<string, string>[]} */
    const messages = [];
    socket.on('message', (data) => messages.push(JSON.parse(String(data))));
    await until(() => messages.length === 1, 'the cursor');
    const lines = await behind.fetch(`${behind.url}?topic=news`, {
      headers: { Accept: 'application/x-ndjson', ...headers },
    });
    const poll = behind.fetch(`${behind.url}?topic=news&wait=30`, { headers });
    await behind.servers[0].untilTotals(({ streams }) => streams === 3, 'all of them');
    socket.send('{"publish":{"topic":"news","data":"one"}}');
    await until(() => messages.length === 3, 'the publication, and the answer');
    assert.deepEqual(messages[1], { id: messages[2].id, topic: 'news', data: 'one' });
    const polled = await poll.then((answer) => answer.json());
    assert.deepEqual(polled, { messages: [messages[1]], cursor: messages[2].id });
    for await (const bytes of lines.body) {
      const text = Buffer.from(bytes).toString().trim();
      if (text === '') continue; // a ping
      assert.deepEqual(JSON.parse(text), messages[1]);
      break;
    }
    await behind.servers[0].untilTotals(({ pings }) => pings >= 6, 'pings');
    assert.equal(socket.readyState, WebSocket.OPEN);
  });

  test(`${proxy}: Chromium has more streams than HTTP/1.1 would give it`, {
    skip: skip || NEEDS_CHROMIUM.skip,
  }, async (t) => {
    const behind = await startBehind(t, proxy, 1, ['--anonymous']);
    const browser = await startBrowser(t);
    const context = await browser.newContext({ ignoreHTTPSErrors: true });
    const page = await context.newPage();
    // Any page of this origin; the proxy has no other.
    await page.goto(behind.url);
    await page.evaluate(
      ({ url, count }) => {
        const got = Array.from({ length: count }, () => '');
        const sources = got.map((_, i) => {
          const source = new EventSource(url);
          source.onmessage = ({ data }) => {
            got[i] += data;
          };
          return source;
        });
        Object.assign(globalThis, { got, sources });
      },
      { url: `${behind.url}?topic=news`, count: MANY },
    );
    await behind.servers[0].untilTotals(({ streams }) => streams === MANY, 'all are open');
    assert.equal(await publish(behind, 'one'), 200);
    await until(
      () =>
        page.evaluate(() =>
          /** @type {any} */ (globalThis).got.every((/** @type {string} */ text) => text === 'one'),
        ),
      'all get it',
    );
    const protocol = await page.evaluate(
      () => /** @type {any} */ (performance.getEntriesByType('navigation')[0]).nextHopProtocol,
    );
    assert.equal(protocol, 'h2');
  });

  test(`${proxy}: a client whose node dies comes back to another one, and gets everything once`, {
    skip: skip || noNats || false,
  }, async (t) => {
    const nats = await startNats(t, { path: natsPath });
    const behind = await startBehind(t, proxy, 3, ['--nats', nats.url]);
    const clients = Array.from({ length: 6 }, () => subscribe(t, behind));
    for (const { untilOpen } of clients) await untilOpen();
    await publishSurely(behind, 'before');
    await until(() => clients.every(({ got }) => got.length === 1), 'the first publication');
    for (const { untilTotals } of behind.servers)
      await untilTotals(({ streams }) => streams === 2, 'all nodes have the same share');
    process.kill(-behind.servers[0].pid, 'SIGKILL');
    await behind.servers[0].exit;
    await publishSurely(behind, 'meanwhile');
    await until(() => clients.every(({ got }) => got.length === 2), 'what was published meanwhile');
    await publishSurely(behind, 'after');
    await until(() => clients.every(({ got }) => got.length === 3), 'what was published after that');
    for (const { got } of clients) assert.deepEqual(got, ['before', 'meanwhile', 'after']);
    assert.equal(clients.filter(({ cursors }) => cursors.some((cursor) => cursor !== null)).length, 2);
  });
}

for (const proxy of Object.keys(PROXIES).filter((name) => name.startsWith('haproxy')))
  test(`${proxy}: a WebSocket comes over HTTP/2 (RFC 8441)`, { skip: missing('haproxy') }, async (t) => {
    const behind = await startBehind(t, proxy, 1, []);
    const session = connect(behind.url, { rejectUnauthorized: false });
    t.after(() => session.destroy());
    await until(() => session.remoteSettings.enableConnectProtocol, 'its settings');
    const stream = session.request({
      ':method': 'CONNECT',
      ':protocol': 'websocket',
      ':path': `${PATH}?topic=news`,
      'sec-websocket-version': '13',
      authorization: `Bearer ${SUBSCRIBER}`,
    });
    /** @type {Buffer[]} */
    const received = [];
    let status = 0;
    stream.on('response', (headers) => {
      status = headers[':status'] ?? 0;
    });
    stream.on('error', () => {}); // when the servers end, after the test
    stream.on('data', (data) => received.push(data));
    await until(
      () => /\{"cursor":"#[\w-]{22}"\}/.test(Buffer.concat(received).toString('latin1')),
      'the cursor',
    );
    assert.equal(status, 200);
  });

test('haproxy: the streams of a node that is not ready any more are ended, and come back elsewhere', {
  skip: missing('haproxy'),
}, async (t) => {
  const certificate = makeNodeCertificate(t);
  const servers = await Promise.all([0, 1].map(() => startServer(t, HUB)));
  let status = 200;
  const ready = createServer((_, response) => void response.writeHead(status).end()).listen(0, '127.0.0.1');
  await new Promise((resolve) => ready.once('listening', resolve));
  t.after(() => ready.close());
  const { port: readyPort } = /** @type {import('node:net').AddressInfo} */ (ready.address());
  const nodes = servers.map(({ port, adminPort }, i) => ({
    port,
    readyPort: i === 0 ? readyPort : adminPort,
  }));
  const port = await quietPort();
  const started = PROXIES.haproxy.start(t, { port, certificate, nodes });
  const fetch = fetchTrusting(t);
  const url = `https://127.0.0.1:${port}${PATH}`;
  await untilListens(started, () => fetch(url).then((answer) => answer.text()));
  const clients = Array.from({ length: 4 }, () => subscribe(t, { url, fetch, servers, port }));
  for (const { untilOpen } of clients) await untilOpen();
  await servers[0].untilTotals(({ streams }) => streams === 2, 'half of them');
  status = 503;
  await servers[1].untilTotals(({ streams }) => streams === 4, 'all of them');
});

test('nginx: /readyz of a node is open to the balancer, and nothing else of the admin port', {
  skip: missing('nginx'),
}, async (t) => {
  const server = await startServer(t, HUB);
  const folder = temporaryFolder(t);
  const port = await quietPort();
  const text = configurationOf('readyz.nginx.conf', [
    ['10.0.0.11:8891', `127.0.0.1:${port}`],
    ['10.0.0.0/24', '127.0.0.1'],
    ['127.0.0.1:8890', `127.0.0.1:${server.adminPort}`],
  ]);
  const config = join(folder, 'nginx.conf');
  writeFileSync(config, `pid ${folder}/pid; error_log stderr; events {} http { access_log off; ${text} }`);
  const words = ['-p', folder, '-c', config, '-e', 'stderr', '-g', 'daemon off; master_process off;'];
  await untilListens(run(t, 'nginx', words), () => fetch(`http://127.0.0.1:${port}/readyz`));
  const statuses = ['/readyz', '/frame', '/publish', '/'].map((path) =>
    fetch(`http://127.0.0.1:${port}${path}`).then(({ status }) => status),
  );
  assert.deepEqual(await Promise.all(statuses), [200, 404, 404, 404]);
});
