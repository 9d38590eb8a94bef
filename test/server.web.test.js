/*
 * The dashboard of a server over HTTP: who may use it, what it answers, and that it costs nothing as long as nobody looks.
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { adminCautions } from '../lib/cautions.js';
import { readConfig } from '../lib/config.js';
import { Access } from '../monitor/access.js';
import { get, rawClient } from './helpers/client.js';
import { startServer, TRANSPORTS, temporaryFolder } from './helpers/server.js';
import { until } from './helpers/until.js';

const TOKEN = 'correct-horse-battery-staple';
/** Of everything that the page loads. */
const MOST_PAGE_BYTES = 150_000;

/** @typedef {Awaited<ReturnType<typeof startServer>>} Server */

/**
 * A request as it is, with any headers: fetch doesn't allow all of them.
 * @param {Server} server @param {string} line such as 'POST /gc' @param {string[]} [headers] Host is localhost unless given @param {string} [body]
 */
async function ask(server, line, headers = [], body = '') {
  const host = headers.some((header) => /^host:/i.test(header)) ? [] : ['Host: localhost'];
  const length = body || line.startsWith('POST') ? [`Content-Length: ${Buffer.byteLength(body)}`] : [];
  const head = [`${line} HTTP/1.1`, ...host, ...headers, ...length, 'Connection: close', '', ''].join('\r\n');
  const client = rawClient(server.adminPort, head + body);
  await client.untilClosed();
  const [start, text = ''] = client.received.split('\r\n\r\n');
  const header = (/** @type {string} */ name) => new RegExp(`^${name}: (.*)$`, 'im').exec(start)?.[1] ?? '';
  return { status: Number(start.slice(9, 12)), text, header };
}

/** @param {string[]} [headers] @returns {string} the request for the stream of frames */
const framesRequest = (headers = []) =>
  ['GET /frames HTTP/1.1', 'Host: localhost', ...headers, '', ''].join('\r\n');

/** How often garbage was collected. @param {Server} server */
const collections = (server) => server.output.stderr.split('requested GC').length - 1;

test('the page loads nothing from elsewhere, may not be framed, and weighs less than 150 KB', async (t) => {
  const server = await startServer(t);
  const page = await server.admin('/');
  assert.equal(page.status, 200);
  const policy = page.headers.get('content-security-policy') ?? '';
  assert.match(policy, /^default-src 'none';.*frame-ancestors 'none'/);
  assert.doesNotMatch(policy, /unsafe|http|\*/);
  assert.equal(page.headers.get('x-content-type-options'), 'nosniff');
  assert.equal(page.headers.get('referrer-policy'), 'no-referrer');
  const loaded = new Set(['/']);
  let bytes = 0;
  for (const path of loaded) {
    const response = await server.admin(path);
    assert.equal(response.status, 200, path);
    assert.equal(response.headers.get('x-content-type-options'), 'nosniff', path);
    const text = await response.text();
    bytes += Buffer.byteLength(text);
    const own = path === '/uplot.js' ? '' : text;
    const found = [...own.matchAll(/(?:src|href)="([^"]+)"|\bfrom\s+'([^']+)'/g)].map(([, a, b]) => a ?? b);
    for (const target of found.filter((one) => !one.startsWith('data:')))
      loaded.add(new URL(target, `http://localhost${path}`).pathname);
    assert.doesNotMatch(text, /\binnerHTML\b|\beval\(/, path);
  }
  assert.ok(loaded.size > 10, [...loaded].join(' '));
  assert.ok(bytes < MOST_PAGE_BYTES, `${bytes} bytes`);
});

for (const transport of TRANSPORTS) {
  describe(`the stream of frames (${transport})`, () => {
    test('continues the history, and has the values of /frame', async (t) => {
      const server = await startServer(t, ['--transport', transport, '--refresh', '1000']);
      const client = rawClient(server.adminPort, framesRequest());
      await client.untilRead(/200 OK[\s\S]*text\/event-stream/i);
      const history = /** @type {any} */ (await (await server.admin('/history')).json());
      assert.equal(history.points.times.length, history.points.columns[0].length);
      const [, json] = await client.untilRead(/\ndata: (\{"t":.*\})\n/);
      const message = JSON.parse(json);
      assert.ok(message.t > history.points.times[0]);
      const totals = Object.fromEntries(
        history.names.totals.map((/** @type {string} */ name, /** @type {number} */ i) => [
          name,
          message.totals[i],
        ]),
      );
      const frame = await server.frame();
      assert.deepEqual(
        Object.keys(totals).sort(),
        Object.keys(frame.totals)
          .filter((name) => name !== 'time')
          .sort(),
      );
      assert.equal(totals.workers, frame.totals.workers);
      assert.deepEqual(
        [message.state, message.problem, message.workers.length],
        ['running', '', frame.workers.length],
      );
      const rest = await (
        await server.admin(`/history?run=${history.run}&after=${history.points.times.at(-1)}`)
      ).json();
      assert.ok(
        /** @type {any} */ (rest).points.times.every(
          (/** @type {number} */ ms) => ms > history.points.times.at(-1),
        ),
      );
      const other = await (await server.admin(`/history?run=other&after=${Date.now()}`)).json();
      assert.ok(/** @type {any} */ (other).points.times.length > 0, 'of another start, all of it');
      client.close();
    });

    test('has topics and channels with their streams and publications', async (t) => {
      const server = await startServer(t, ['--transport', transport, '--anonymous', '--workers', '2']);
      const targets = ['a', 'a', 'a', 'b'].map((topic) => `/.well-known/mercure?topic=${topic}`);
      const listeners = [...targets, '/.well-known/mercure?topic=*', '/?channel=c'].map((target) =>
        rawClient(server.port, get().replace('/ HTTP', `${target} HTTP`)),
      );
      await server.untilTotals(({ streams }) => streams === listeners.length, 'the streams');
      const client = rawClient(server.adminPort, framesRequest());
      await client.untilRead(/event: topics/);
      const post = (/** @type {string} */ path, /** @type {BodyInit} */ body) =>
        fetch(`http://127.0.0.1:${server.adminPort}${path}`, { method: 'POST', body });
      for (const topic of ['b', 'b', 'a'])
        await post('/.well-known/mercure', new URLSearchParams({ topic, data: 'x' }));
      await post('/publish?channel=c', 'x');
      const topics = await until(() => {
        const last = [...client.received.matchAll(/event: topics\nretry: \d+\ndata: (.*)\n/g)].at(-1)?.[1];
        const read = last && JSON.parse(last);
        return read.publications.rows.length === 3 && read;
      }, 'the next topics');
      const sorted = (/** @type {any[]} */ rows) =>
        rows.toSorted((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
      assert.deepEqual(sorted(topics.subscribers.rows), [
        ['=a', 3, 0],
        ['#c', 1, 0],
        ['*', 1, 0],
        ['=b', 1, 0],
      ]);
      assert.deepEqual(sorted(topics.publications.rows), [
        ['=b', 2, 0],
        ['#c', 1, 0],
        ['=a', 1, 0],
      ]);
      assert.equal(topics.unanswered, 0);
      for (const one of [client, ...listeners]) one.close();
    });
  });
}

test('a server that nobody looks at has no thread for dashboards; at most 32 are open', async (t) => {
  const server = await startServer(t);
  const threads = () => readdirSync(`/proc/${server.pid}/task`).length;
  await server.admin('/healthz');
  const before = threads();
  const clients = Array.from({ length: 33 }, () => rawClient(server.adminPort, framesRequest()));
  await until(() => clients.every(({ received }) => /^HTTP\/1.1 \d+/.test(received)), 'all are answered');
  const statuses = clients.map(({ received }) => received.slice(9, 12)).sort();
  assert.deepEqual([statuses[0], statuses[31], statuses[32]], ['200', '200', '503']);
  if (TRANSPORTS.includes('hold')) assert.ok(threads() > before, 'now there is one');
  assert.equal((await server.admin('/healthz')).status, 200);
  for (const client of clients) client.close();
  const again = await until(async () => {
    const client = rawClient(server.adminPort, framesRequest());
    const [, status] = await client.untilRead(/^HTTP\/1.1 (\d+)/);
    client.close();
    return status === '200';
  }, 'there is room again');
  assert.ok(again);
});

test('open dashboards delay neither the drain nor the exit, and are told', async (t) => {
  const server = await startServer(t, ['--drain', '100']);
  const clients = Array.from({ length: 3 }, () => rawClient(server.adminPort, framesRequest()));
  for (const client of clients) await client.untilRead(/data: \{"t"/);
  const beginMs = Date.now();
  assert.equal((await server.stop()).code, 0);
  assert.ok(Date.now() - beginMs < 10_000);
  for (const client of clients) {
    await client.untilClosed();
    assert.match(client.received, /"state":"draining"/);
    assert.match(client.received, /event: stopped/);
  }
});

test('gc and drain need X-Holdfast, and a request that is not of another page', async (t) => {
  const server = await startServer(t, ['--drain', '0']);
  const own = `http://localhost:${server.adminPort}`;
  const host = `Host: localhost:${server.adminPort}`;
  const mark = 'X-Holdfast: 1';
  const refused = [
    [],
    ['X-Holdfast: 0'],
    [mark, 'Origin: http://evil.example'],
    [mark, 'Origin: null'],
    [mark, `Origin: http://localhost:${server.port}`],
    [mark, 'Sec-Fetch-Site: cross-site'],
    [mark, host, `Origin: ${own}`, 'Sec-Fetch-Site: same-site'],
    [mark, 'Host: evil.example'],
    [mark, 'Host: evil.example', 'Origin: http://evil.example', 'Sec-Fetch-Site: same-origin'],
  ];
  for (const path of ['/gc', '/reload', '/drain'])
    for (const headers of refused)
      assert.equal((await ask(server, `POST ${path}`, headers)).status, 403, `${path} ${headers}`);
  assert.equal((await ask(server, 'GET /drain', [mark])).status, 405);
  const preflight = ['Origin: http://evil.example', 'Access-Control-Request-Method: POST'];
  const { status, header } = await ask(server, 'OPTIONS /drain', preflight);
  assert.deepEqual([status, header('access-control-allow-origin')], [405, '']);
  assert.equal(collections(server), 0);

  const allowed = [[mark], [mark, host, `Origin: ${own}`, 'Sec-Fetch-Site: same-origin']];
  for (const headers of allowed)
    assert.equal((await ask(server, 'POST /gc', headers)).status, 202, String(headers));
  await until(() => collections(server) === allowed.length, 'both were done');
  assert.equal((await ask(server, 'POST /drain', [mark])).text, 'draining over 0 ms\n');
  assert.equal((await server.exit).code, 0);
});

test('only web pages of this origin read anything', async (t) => {
  const server = await startServer(t);
  for (const path of ['/', '/history', '/frames', '/frame', '/uplot.js']) {
    assert.equal((await ask(server, `GET ${path}`, ['Host: evil.example'])).status, 403, path);
    const head = rawClient(
      server.adminPort,
      `HEAD ${path} HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\n\r\n`,
    );
    await head.untilRead(/\r\n\r\n/);
    assert.doesNotMatch(head.received, /access-control/i, path);
    head.close();
  }
});

test('other pages can not keep the server busy, but a link to the dashboard works', async (t) => {
  const server = await startServer(t);
  const foreign = 'Sec-Fetch-Site: cross-site';
  for (const path of ['/history', '/frames', '/frame', '/metrics', '/ticks', '/uplot.js'])
    assert.equal((await ask(server, `GET ${path}`, [foreign])).status, 403, path);
  assert.equal((await ask(server, 'GET /', [foreign, 'Sec-Fetch-Mode: navigate'])).status, 200);
});

test('without a token, requests that a proxy passes on are refused, but for probes', async (t) => {
  const server = await startServer(t);
  for (const header of [
    'X-Forwarded-For: 203.0.113.9',
    'Via: 1.1 proxy',
    'Forwarded: for=203.0.113.9',
    'X-Real-IP: 203.0.113.9',
  ]) {
    const { status, text } = await ask(server, 'GET /frame', [header]);
    assert.equal(status, 403, header);
    assert.match(text, /of a proxy: start the server with --admin-token/);
    assert.equal((await ask(server, 'GET /readyz', [header])).status, 200, header);
  }
  const other = await startServer(t, ['--admin-token', TOKEN]);
  const headers = [`Authorization: Bearer ${TOKEN}`, 'X-Forwarded-For: 203.0.113.9'];
  assert.equal((await ask(other, 'GET /frame', headers)).status, 200);
});

test('a connection may make a hundred requests, so nobody fills the memory with answers that he does not read', async (t) => {
  const server = await startServer(t);
  const client = rawClient(server.adminPort, 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(300));
  await client.untilClosed();
  assert.equal(client.received.match(/200 OK/g)?.length, 100);
});

test('workers do not get the token', {
  skip: process.platform !== 'linux' && 'it reads /proc',
}, async (t) => {
  const server = await startServer(t, [], { prefix: ['env', `HOLDFAST_ADMIN_TOKEN=${TOKEN}`] });
  assert.equal((await ask(server, 'GET /frame')).status, 401);
  for (const pid of server.workerPids)
    assert.doesNotMatch(readFileSync(`/proc/${pid}/environ`, 'utf8'), /HOLDFAST_ADMIN_TOKEN/);
});

describe('--admin-token', () => {
  const ARGS = ['--admin-token', TOKEN, '--drain', '0'];
  const bearer = `Authorization: Bearer ${TOKEN}`;
  /** Everything that needs it. */
  const LINES = ['/frame', '/ticks', '/metrics', '/history', '/frames', '/uplot.js', '/nothing'].map(
    (path) => `GET ${path}`,
  );
  const POSTS = ['/publish?channel=a', '/.well-known/mercure', '/revoke', '/gc', '/reload', '/drain'].map(
    (path) => `POST ${path}`,
  );

  /** @param {Server} server @returns {Promise<string>} the header Cookie */
  async function logIn(server) {
    const { status, header } = await ask(
      server,
      'POST /login',
      ['Content-Type: application/x-www-form-urlencoded'],
      `token=${TOKEN}`,
    );
    assert.deepEqual([status, header('location')], [303, '/']);
    const cookie = header('set-cookie');
    assert.match(cookie, /; HttpOnly; SameSite=Strict$/);
    assert.ok(!cookie.includes(TOKEN));
    return `Cookie: other=1; ${cookie.split(';')[0]}`;
  }

  test('is needed for everything but the probes, from this machine too', async (t) => {
    const server = await startServer(t, ARGS);
    for (const line of [...LINES, ...POSTS]) {
      const { status, header } = await ask(server, line, ['X-Holdfast: 1']);
      assert.deepEqual([status, header('www-authenticate')], [401, 'Bearer realm="holdfast"'], line);
    }
    for (const path of ['/healthz', '/readyz'])
      assert.equal((await ask(server, `GET ${path}`)).status, 200, path);
    for (const path of ['/healthz/../frame', '//healthz', '/healthz%2f..%2fframe', '/%66rame'])
      assert.equal((await ask(server, `GET ${path}`)).status, 401, path);
    const login = await ask(server, 'GET /');
    assert.deepEqual([login.status, /<form method="post" action="\/login">/.test(login.text)], [401, true]);
    assert.match(login.header('content-security-policy'), /default-src 'none'.*frame-ancestors 'none'/);
    assert.ok(!server.output.stderr.includes(TOKEN));
  });

  test('works as Bearer under every name, without any other header', async (t) => {
    const server = await startServer(t, ARGS);
    const from = [bearer, 'Host: hub.example', 'Origin: http://elsewhere.example'];
    assert.equal((await ask(server, 'GET /frame', from)).status, 200);
    assert.equal((await ask(server, 'POST /publish?channel=a', from, 'x')).status, 202);
    const form = [...from, 'Content-Type: application/x-www-form-urlencoded'];
    assert.equal((await ask(server, 'POST /.well-known/mercure', form, 'topic=a')).status, 200);
    assert.equal((await ask(server, 'POST /revoke', form, 'subject=a')).status, 202);
    assert.equal((await ask(server, 'POST /gc', from)).status, 202);
    assert.equal((await ask(server, 'GET /', from)).status, 200);
    assert.equal((await ask(server, 'POST /drain', from)).status, 202);
    assert.equal((await server.exit).code, 0);
  });

  test('gives a session, which reads everything; it changes something only for our own page', async (t) => {
    const server = await startServer(t, ARGS);
    const cookie = await logIn(server);
    for (const line of ['GET /', 'GET /frame', 'GET /history'])
      assert.equal((await ask(server, line, [cookie, 'Host: hub.example'])).status, 200, line);
    const own = [
      cookie,
      'Host: hub.example:8890',
      'Origin: http://hub.example:8890',
      'Sec-Fetch-Site: same-origin',
    ];
    const near = [
      cookie,
      'Host: hub.example:8890',
      'Origin: http://hub.example:8888',
      'Sec-Fetch-Site: same-site',
    ];
    assert.equal((await ask(server, 'POST /gc', [...near, 'X-Holdfast: 1'])).status, 403);
    assert.equal((await ask(server, 'POST /gc', own)).status, 403, 'without X-Holdfast');
    assert.equal((await ask(server, 'POST /gc', [...own, 'X-Holdfast: 1'])).status, 202);
    for (const line of ['POST /publish?channel=a', 'POST /.well-known/mercure', 'POST /revoke'])
      assert.equal((await ask(server, line, [...own, 'X-Holdfast: 1'], 'topic=a')).status, 403, line);
  });

  test('is not replaced by a cookie that was made up, has been changed or has ended', async (t) => {
    const server = await startServer(t, ARGS);
    const cookie = await logIn(server);
    const [, name, endS, signature] = /(holdfast-admin-\d+)=(\d+)\.(.*)$/.exec(cookie) ?? [];
    const wrong = [
      `${Number(endS) + 1}.${signature}`,
      `${endS}.${signature}x`,
      `${endS}.`,
      signature,
      `1.${signature}`,
      TOKEN,
      '',
    ];
    for (const value of wrong)
      assert.equal((await ask(server, 'GET /frame', [`Cookie: ${name}=${value}`])).status, 401, value);
    assert.equal((await ask(server, 'GET /frame', [`Cookie: ${name}=${endS}.${signature}`])).status, 200);
    const both = [`Cookie: ${name}=${endS}.${signature}`, 'Authorization: Bearer wrong'];
    assert.equal(
      (await ask(server, 'GET /frame', both)).status,
      401,
      'a wrong token counts more than the cookie',
    );
  });

  test('is not guessed fast: a wrong one waits on every path and in the login, and a right one never', async (t) => {
    const server = await startServer(t, ARGS);
    const form = ['Content-Type: application/x-www-form-urlencoded'];
    const wrong = [
      ask(server, 'GET /frame', ['Authorization: Bearer wrong']),
      ask(server, 'GET /', ['Authorization: Bearer wrong']),
      ask(server, 'POST /login', form, 'token=wrong'),
    ].map(async (answer) => (await answer).status);
    const right = ask(server, 'GET /frame', [bearer]).then(() => 'right');
    assert.equal(await Promise.race([right, ...wrong]), 'right');
    assert.deepEqual(await Promise.all(wrong), [401, 401, 401]);
  });

  test('lets few wrong ones wait at a time, and refuses the others at once', async () => {
    const access = new Access({ host: '127.0.0.1', token: TOKEN });
    const outcomes = await Promise.allSettled(Array.from({ length: 20 }, () => access.slowDown()));
    const refused = outcomes.filter(({ status }) => status === 'rejected');
    assert.deepEqual([refused.length, /** @type {any} */ (refused[0]).reason.status], [4, 429]);
    await access.slowDown();
  });

  test('may be in a file, and a new server with the same one knows the session', async (t) => {
    const file = join(temporaryFolder(t), 'token');
    writeFileSync(file, `${TOKEN}\n`);
    const first = await startServer(t, ['--admin-token', `@${file}`, '--drain', '0']);
    const cookie = await logIn(first);
    await first.stop();
    const second = await startServer(t, [
      '--admin-token',
      `@${file}`,
      '--admin-port',
      String(first.adminPort),
    ]);
    assert.equal((await ask(second, 'GET /frame', [cookie])).status, 200);
  });
});

describe('--admin-host', () => {
  /** @param {string[]} args */
  const problemOf = (args) => {
    try {
      readConfig(args, {});
      return '';
    } catch (error) {
      return /** @type {Error} */ (error).message;
    }
  };

  test('without a token it has to be loopback', () => {
    for (const host of ['0.0.0.0', '::', '10.1.2.3', 'example.com', '128.0.0.1', '127.0.0.1.example.com'])
      assert.match(problemOf(['--admin-host', host]), /^--admin-host \S+ needs --admin-token/, host);
    for (const host of ['127.0.0.1', '127.1.2.3', '::1', 'localhost'])
      assert.equal(problemOf(['--admin-host', host]), '', host);
    assert.equal(problemOf(['--admin-host', '0.0.0.0', '--admin-token', TOKEN]), '');
    assert.equal(problemOf(['--admin-host', '0.0.0.0', '--admin-port', '0']), '', 'there is no port');
  });

  test('a token that can be guessed or not be sent is refused, and never shown', () => {
    for (const token of ['short', 'x'.repeat(15), 'fifteen plus one!', 'grün-grün-grün-grün']) {
      const problem = problemOf(['--admin-token', token]);
      assert.match(problem, /^--admin-token has /, token);
      assert.ok(!problem.includes(token));
    }
  });

  test('one line says that the token goes over plain http', () => {
    const cautions = (/** @type {string[]} */ ...args) => adminCautions(readConfig(args, {}).config).length;
    const token = ['--admin-token', TOKEN];
    assert.deepEqual(
      [cautions(), cautions(...token), cautions(...token, '--admin-host', '0.0.0.0')],
      [0, 0, 1],
    );
  });

  test('it listens there, and answers under its own name', async (t) => {
    const server = await startServer(t, ['--admin-host', '127.0.0.2', '--workers', '1']).catch(
      (error) => error,
    );
    assert.match(String(server.output?.stderr ?? server), /dashboard on http:\/\/127\.0\.0\.2:\d+/);
    const url = `http://127.0.0.2:${server.adminPort}/healthz`;
    assert.equal((await fetch(url)).status, 200);
    // Other tests have servers with such a port at 127.0.0.1.
    await assert.rejects(fetch(url.replace('127.0.0.2', '127.0.0.3')));
  });
});
