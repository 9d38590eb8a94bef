import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { noCauses } from '../fleet/drone/causes.js';
import { decode } from '../fleet/drone/histograms.js';
import { dataOf } from '../fleet/drone/topics/publication.js';
import { HubFixture } from './fixtures/hub.js';
import { startDrone } from './helpers/drone.js';
import { ROOT, run, startServer, temporaryFolder } from './helpers/server.js';
import { until } from './helpers/until.js';

/** @param {import('node:test').TestContext} t @param {(socket: import('node:net').Socket) => void} onConnection */
async function startOther(t, onConnection) {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    onConnection(socket);
  }).listen(0, '127.0.0.1');
  t.after(() => server.close());
  await new Promise((resolve) => server.once('listening', resolve));
  return /** @type {import('node:net').AddressInfo} */ (server.address()).port;
}

test('a drone opens streams at its ramp, holds them, and closes them when it is stopped', async (t) => {
  const server = await startServer(t, ['--ping-interval', '500']);
  const drone = await startDrone(t, server.port, '--n', '400', '--ramp', '200');
  await server.untilTotals(({ streams, pings }) => streams === 400 && pings > 400, 'all are open and pinged');
  const { drone: facts, counts } = await drone.untilStats(
    ({ counts: { pings, open } }) => pings > 0 && open === 400,
    'pings',
  );
  assert.deepEqual([facts.state, counts.open, counts.opened], ['holding', 400, 400]);
  assert.ok(facts.elapsedMs >= 1900, `400 streams at 200 per second took only ${facts.elapsedMs} ms`);
  drone.child.kill('SIGTERM');
  assert.deepEqual(await drone.exit, { code: 0, signal: null });
  const totals = await server.untilTotals(({ streams }) => streams === 0, 'all are closed');
  assert.equal(totals.closedClientGone, 400);
});

test('opens and closes streams as told, and a bad parameter changes nothing', async (t) => {
  const server = await startServer(t);
  const drone = await startDrone(t, server.port);
  assert.equal((await drone.ask('/')).body.drone.state, 'idle');
  assert.equal((await drone.ask('/set?n=60&ramp=5000', 'POST')).body.params.n, 60);
  await server.untilTotals(({ streams }) => streams === 60, '60 streams');
  assert.equal((await drone.ask('/set?n=5&ramp=none', 'POST')).status, 400);
  assert.equal((await drone.ask('/set?n=20', 'POST')).status, 200);
  await server.untilTotals(({ streams }) => streams === 20, '20 streams');
  await drone.untilStats(
    ({ counts: { closed, lost } }) => closed === 40 && lost.closed === 0,
    '40 closed, none lost',
  );
  await drone.ask('/set?n=0', 'POST');
  await server.untilTotals(({ streams }) => streams === 0, 'no streams');
});

test('streams that the server ends are lost, with a cause, and reopened when it is back', async (t) => {
  const first = await startServer(t, ['--drain', '0', '--ping-interval', '500']);
  const drone = await startDrone(t, first.port, '--n', '30', '--ramp', '1000');
  await first.untilTotals(({ streams }) => streams === 30, '30 streams');
  await first.stop();
  await drone.untilStats(({ counts: { lost } }) => lost.closed === 30, '30 are lost');
  await drone.untilStats(
    ({ counts, drone: { state } }) => counts.failed.refused > 0 && state !== 'holding',
    'attempts to reopen them',
  );
  const second = await startServer(t, ['--port', String(first.port), '--ping-interval', '500']);
  await second.untilTotals(({ streams }) => streams === 30, 'all are back');
  await drone.untilStats(
    ({ counts, drone: { state } }) => counts.opened === 60 && state === 'holding',
    'it holds',
  );
});

test('what is not a Holdfast stream fails with a cause and a sample of the bytes', async (t) => {
  const port = await startOther(t, (socket) => socket.end('SSH-2.0-other\r\n\r\n'));
  const drone = await startDrone(t, port, '--n', '2');
  const { counts, samples } = await drone.untilStats(
    ({ counts: { failed } }) => failed.unexpected >= 2,
    'failures',
  );
  assert.deepEqual([counts.open, counts.opened], [0, 0]);
  assert.deepEqual(samples[0], { cause: 'unexpected', text: 'SSH-2.0-other' });
  await until(() => /last unexpected: "SSH-2\.0-other/.test(drone.output.stdout), 'it says so');
});

test('what a hostile server sends reaches the terminal without control characters, C1 included', async (t) => {
  const evil = '\x9b2J\x1b[31mEVIL\x07\x85';
  const port = await startOther(t, (socket) => {
    const chunk = `${evil.length.toString(16)}\r\n${evil}\r\n`;
    socket.end(Buffer.from(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${chunk}`, 'latin1'));
  });
  const drone = await startDrone(t, port, '--n', '1');
  await until(() => /last unexpected: .*EVIL/.test(drone.output.stdout), 'it shows the bytes');
  // biome-ignore lint/suspicious/noControlCharactersInRegex: it looks for control characters
  assert.doesNotMatch(drone.output.stdout, /[\x00-\x09\x0b-\x1f\x7f-\x9f]/);
});

test('measures what clients see: times to connect and to the first byte, and lateness of pings', async (t) => {
  const server = await startServer(t, ['--ping-interval', '200', '--accept-load']);
  const drone = await startDrone(t, server.port, '--n', '20', '--ramp', '1000');
  const stats = await drone.untilStats(({ percentiles: { latenessMs } }) => latenessMs.count >= 100, 'pings');
  const { connectMs, firstByteMs, latenessMs, deliveryMs } = stats.percentiles;
  assert.deepEqual([connectMs.count, firstByteMs.count, deliveryMs.count], [20, 20, 0]);
  assert.ok(connectMs.p50 > 0 && firstByteMs.p50 >= connectMs.p50 && firstByteMs.max >= firstByteMs.p99);
  assert.equal(decode(stats.histograms.lateness).count, latenessMs.count);
});

test('without the ping interval of the server no lateness is made up; it can be given', async (t) => {
  const port = await startOther(t, (socket) => {
    socket.once('data', (head) => {
      if (head.includes('holdfast-load'))
        return void socket.end('HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n');
      socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\nWelcome!\r\n');
      const timer = setInterval(() => socket.write('4\r\nping\r\n'), 100);
      socket.once('close', () => clearInterval(timer));
    });
  });
  const uninformed = await startDrone(t, port, '--n', '5');
  const informed = await startDrone(t, port, '--n', '5', '--interval', '100');
  await informed.untilStats(({ percentiles: { latenessMs } }) => latenessMs.count > 20, 'lateness');
  const { percentiles } = await uninformed.untilStats(({ counts: { pings } }) => pings > 20, 'pings');
  assert.equal(percentiles.latenessMs.count, 0);
});

test('messages with their send time are measured on a channel, and are errors without one', async (t) => {
  const server = await startServer(t);
  const listening = await startDrone(t, server.port, '--n', '10', '--channel', 'news');
  const strict = await startDrone(t, server.port, '--n', '1', '--path', '/?%63hannel=news');
  await server.untilTotals(({ streams }) => streams === 11, '11 streams');
  const body = `@${Date.now() * 1000} hello`;
  const url = `http://127.0.0.1:${server.adminPort}/publish?channel=news`;
  assert.equal((await fetch(url, { method: 'POST', body })).status, 202);
  const { counts, percentiles } = await listening.untilStats(
    ({ counts: { messages } }) => messages === 10,
    'messages',
  );
  assert.equal(counts.lost.unexpected, 0);
  assert.equal(percentiles.deliveryMs.count, 10);
  assert.ok(percentiles.deliveryMs.max < 20_000, `${percentiles.deliveryMs.max} ms`);
  const { samples } = await strict.untilStats(
    ({ counts: { lost } }) => lost.unexpected === 1,
    'the strict one lost it',
  );
  assert.equal(samples[0].text, body);
});

test('changes at the same time take turns, so that none undoes another, and only few wait', async (t) => {
  const port = await startOther(t, (socket) => {
    const answer = 'HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n';
    socket.once('data', () => setTimeout(() => socket.end(answer), 200));
  });
  const drone = await startDrone(t, port);
  const changes = ['n=5', 'path=/b'].map((change) => drone.ask(`/set?${change}`, 'POST'));
  for (const { status } of await Promise.all(changes)) assert.equal(status, 200);
  const { params } = (await drone.ask('/')).body;
  assert.deepEqual([params.n, params.path], [5, '/b']);
  const many = await Promise.all(Array.from({ length: 12 }, () => drone.ask('/set?ramp=500', 'POST')));
  assert.deepEqual([...new Set(many.map(({ status }) => status))].sort(), [200, 503]);
});

test('a drone can be told to subscribe to topics, and keeps its secrets to itself', async (t) => {
  const hub = new HubFixture({ secret: 'the secret' });
  const drone = await startDrone(t, await hub.start(t), '--topic', 'a/{n}', '--token-secret', 'another');
  const bad = await drone.ask('/set?channel=b', 'POST');
  assert.deepEqual([bad.status, /exclude each other/.test(bad.body.error)], [400, true]);
  const query = 'topic=room/{n%252}&topic=all&token-secret=the%20secret&first=10&step=3&n=3';
  const { body } = await drone.ask(`/set?${query}`, 'POST');
  assert.deepEqual([body.params.topic, body.params.tokenSecret], [['room/{n%2}', 'all'], '(hidden)']);
  const { params } = await drone.untilStats(({ counts: { open } }) => open === 3, 'open streams');
  assert.deepEqual([params.tokenSecret, params.token], ['(hidden)', '']);
  const asked = hub.requests.map(({ url, payload }) => `${url.split('?')[1]} ${payload.sub}`);
  const expected = [10, 13, 16].map((n) => `match=room%2F${n % 2}&match=all user-${n}`);
  assert.deepEqual(asked.sort(), expected.sort());
});

test('a drone closes streams and opens them again as often as it is told to', async (t) => {
  const server = await startServer(t);
  const drone = await startDrone(t, server.port, '--n', '20', '--ramp', '1000');
  await drone.untilStats(({ counts: { open } }) => open === 20, 'open streams');
  await drone.ask('/set?churn=50', 'POST');
  const begunMs = performance.now();
  const { counts } = await drone.untilStats(({ counts: { churned } }) => churned >= 50, 'churn');
  assert.ok(performance.now() - begunMs > 800);
  assert.deepEqual([counts.closed, counts.open + counts.inFlight], [counts.churned, 20]);
  await drone.ask('/set?churn=0', 'POST');
  await server.untilTotals(({ streams, opened }) => streams === 20 && opened >= 70, 'all are open');
});

test('a drone cuts streams off and keeps them away, and then they come back for what they missed', async (t) => {
  const hub = new HubFixture();
  const drone = await startDrone(t, await hub.start(t), '--topic', 'room/{n}', '--n', '20', '--ramp', '1000');
  await drone.untilStats(({ counts: { open } }) => open === 20, 'open streams');
  const publish = (/** @type {number} */ number) => {
    for (let n = 0; n < 20; n++) {
      const topic = `room/${n}`;
      hub.publish(topic, dataOf({ publisher: 1, number, clock: 'monotonic', topic }, 1));
    }
  };
  publish(1);
  await drone.untilStats(({ counts: { delivered } }) => delivered === 20, 'each has one');
  await drone.ask('/set?away=15', 'POST');
  const away = await drone.untilStats(({ counts: { open } }) => open === 5, 'most are away');
  assert.deepEqual([away.counts.target, away.counts.closed], [5, 15]);
  await drone.untilStats(({ drone: { state } }) => state === 'holding', 'it opens none of them');
  publish(2);
  await drone.untilStats(({ counts: { delivered } }) => delivered === 25, 'the others have another one');
  await drone.ask('/set?away=0', 'POST');
  const { counts } = await drone.untilStats(({ counts: { delivered } }) => delivered === 40, 'all have both');
  const { open, resumed, recovered, missed, duplicated, lost } = counts;
  assert.deepEqual([open, resumed, recovered, missed, duplicated], [20, 15, 15, 0, 0]);
  assert.deepEqual(lost, noCauses());
  await drone.ask('/set?away=100', 'POST');
  await drone.untilStats(({ counts: { open } }) => open === 0, 'all are away');
});

test('a restart reopens all streams and counts from 0', async (t) => {
  const server = await startServer(t);
  const drone = await startDrone(t, server.port, '--n', '25', '--ramp', '1000');
  await server.untilTotals(({ streams }) => streams === 25, '25 streams');
  await drone.untilStats(({ counts: { opened } }) => opened === 25, 'it knows');
  assert.equal((await drone.ask('/restart', 'POST')).status, 200);
  await server.untilTotals(({ streams, opened }) => streams === 25 && opened === 50, 'they are open again');
  await drone.untilStats(({ counts }) => counts.opened === 25 && counts.open === 25, 'and counted from 0');
});

test('a restart counts from 0 however long the target takes to consent', async (t) => {
  const CONSENT_MS = 400;
  const port = await startOther(t, (socket) => {
    socket.once('data', (head) => {
      if (!head.includes('holdfast-load')) return void socket.write('HTTP/1.1 200 OK\r\n\r\nWelcome!\n');
      setTimeout(() => socket.end('HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n'), CONSENT_MS);
    });
  });
  const drone = await startDrone(t, port, '--n', '25', '--ramp', '1000', '--expect', 'any');
  await drone.untilStats(({ counts: { open } }) => open === 25, 'they are open');
  assert.equal((await drone.ask('/restart', 'POST')).status, 200);
  await drone.untilStats(({ counts }) => counts.opened > 0 && counts.open === 25, 'they are open again');
  assert.equal((await drone.ask('/')).body.counts.opened, 25);
});

test('writes a file that says how to reach it, for its user alone, and removes it at its end', async (t) => {
  const folder = join(temporaryFolder(t), 'fleet');
  const drone = await startDrone(t, 1, '--register', folder);
  const [name] = await until(() => existsSync(folder) && readdirSync(folder), 'the file');
  assert.equal(statSync(join(folder, name)).mode & 0o777, 0o600);
  const { pid, url } = JSON.parse(readFileSync(join(folder, name), 'utf8'));
  assert.equal(pid, drone.pid);
  assert.equal(/** @type {any} */ (await (await fetch(url)).json()).drone.pid, drone.pid);
  await drone.ask('/stop', 'POST');
  assert.equal((await drone.exit).code, 0);
  assert.deepEqual(readdirSync(folder), []);
});

/** Starts a drone with a script that decides when it ends. @param {import('node:test').TestContext} t @param {string} then */
async function childOf(t, then) {
  const script = `import { fork } from 'node:child_process';
    const drone = fork('fleet/drone.js', ['--listen-port', '0', '--quiet'], { execArgv: [], stdio: 'ignore', detached: true });
    drone.once('message', ({ type, url }) => { console.log(JSON.stringify({ type, url, pid: drone.pid })); ${then} });`;
  const parent = run(t, process.execPath, ['--input-type=module', '-e', script]);
  const line = await until(() => /^\{.*\}$/m.exec(parent.output.stdout)?.[0], 'the message of the drone');
  const said = JSON.parse(line);
  t.after(() => {
    if (existsSync(`/proc/${said.pid}`)) process.kill(said.pid, 'SIGKILL');
  });
  return { parent, said };
}

test('tells its parent when it listens, and ends with it', async (t) => {
  const { parent, said } = await childOf(t, '');
  assert.equal(said.type, 'listening');
  assert.equal((await fetch(said.url)).status, 200);
  parent.child.kill('SIGKILL');
  await until(() => !existsSync(`/proc/${said.pid}`), 'it is gone');
});

test('outlives its parent once that has released it', async (t) => {
  const { parent, said } = await childOf(t, "drone.send({ type: 'release' }, () => process.exit());");
  await parent.exit;
  assert.equal((await fetch(said.url)).status, 200);
  await fetch(`${said.url}/stop`, { method: 'POST' });
  await until(() => !existsSync(`/proc/${said.pid}`), 'it is gone');
});

/** @type {[string[], RegExp][]} */
const BAD = [
  [['--n', 'many'], /^drone: --n got 'many': expected a whole number/],
  [['--streams', '5'], /^drone: unknown option --streams: see --help/],
  [['--listen', '0.0.0.0'], /^drone: --listen 0\.0\.0\.0 is not a loopback address, .* HOLDFAST_TOKEN$/],
  [['--host', 'no-such-host.invalid', '--n', '1'], /^drone: unknown host 'no-such-host\.invalid'/],
  [
    ['--register', '/proc/none'],
    /^drone: can't write to --register \/proc\/none: ENOENT.*; give another folder$/,
  ],
];

for (const [args, line] of BAD) {
  test(`${args.join(' ')} is an error of one line`, () => {
    const words = ['fleet/drone.js', '--listen-port', '0', ...args];
    const { status, stderr } = spawnSync(process.execPath, words, {
      cwd: ROOT,
      encoding: 'utf8',
      timeout: 30_000,
    });
    assert.match(stderr.trimEnd(), line);
    assert.doesNotMatch(stderr.trimEnd(), /\n/);
    assert.equal(status, 1);
  });
}
