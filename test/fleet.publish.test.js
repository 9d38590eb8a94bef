/*
 * The publisher of the fleet against a hub, and the command that uses it.
 */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { publicationIn } from '../fleet/drone/topics/publication.js';
import { HubPublisher, hubUrl } from '../fleet/publish/hub.js';
import { HubFixture } from './fixtures/hub.js';
import { run, temporaryFolder } from './helpers/server.js';
import { until } from './helpers/until.js';

/** @typedef {import('node:test').TestContext} TestContext */

const SECRET = 'the secret of the test';
const SIGNER = /** @type {const} */ ({ secret: SECRET, dialect: '0.x', ttlS: 100 });

/** @param {TestContext} t @param {number} port @param {Partial<import('../fleet/publish/hub.js').Settings>} settings */
function publisherTo(t, port, settings) {
  const publisher = new HubPublisher({
    urls: [hubUrl(`http://127.0.0.1:${port}`)],
    retryMs: 0,
    topics: ['room/{n%3}'],
    streams: 10,
    perSecond: 200,
    batch: 1,
    size: 1,
    token: '',
    signer: null,
    clock: 'monotonic',
    ...settings,
  });
  t.after(() => publisher.close());
  return publisher;
}

/** @param {HubFixture} hub @returns {Map<string, number[]>} the numbers by topic, in the order of the hub */
function numbersIn(hub) {
  /** @type {Map<string, number[]>} */
  const numbers = new Map();
  for (const { topic, data } of hub.history) {
    const publication = publicationIn(data) ?? assert.fail(data);
    assert.equal(publication.topic, topic);
    numbers.set(topic, [...(numbers.get(topic) ?? []), publication.number]);
  }
  return numbers;
}

for (const batch of [1, 20]) {
  test(`publications are numbered by topic, in order, ${batch} per request`, async (t) => {
    const hub = new HubFixture({ secret: SECRET });
    const publisher = publisherTo(t, await hub.start(t), {
      batch,
      size: 150,
      perSecond: 400,
      signer: SIGNER,
    });
    await publisher.check();
    publisher.start();
    await until(() => hub.history.length >= 300, 'publications');
    publisher.stop();
    await until(() => publisher.pending === 0, 'answers');
    const numbers = numbersIn(hub);
    assert.deepEqual([...numbers.keys()].sort(), ['room/0', 'room/1', 'room/2']);
    for (const all of numbers.values()) assert.deepEqual(all, all.map((_, i) => i + 1)); // biome-ignore format: one line
    assert.equal(hub.history[0].data.length, 150);
    const { sent, topics, expected } = publisher.counts();
    assert.deepEqual([sent, topics], [hub.history.length, 3]);
    const [four, three, other] = ['room/0', 'room/1', 'room/2'].map(
      (topic) => numbers.get(topic)?.length ?? 0,
    );
    assert.equal(expected, 4 * four + 3 * three + 3 * other);
    assert.equal(hub.posted[0].startsWith('['), batch > 1);
  });
}

test('a hub that is too slow gets one request at a time, and what still waits at the end has failed', async (t) => {
  const hub = new HubFixture();
  const publisher = publisherTo(t, await hub.start(t), { perSecond: 500, topics: ['room'] });
  /** @type {(() => void)[]} */
  const held = [];
  const answer = hub.answer.bind(hub);
  hub.answer = (request, response) => void held.push(() => answer(request, response));
  publisher.start();
  await until(() => publisher.pending > 50, 'waiting requests');
  assert.equal(held.length, 1);
  publisher.stop();
  held[0]();
  await until(() => publisher.pending === 0, 'the answer');
  const { sent, failed, problem } = publisher.counts();
  assert.deepEqual([sent, hub.history.length], [1, 1]);
  assert.ok(failed >= 50, `${failed}`);
  assert.match(problem, /^\d+ requests were waiting at the end$/);
});

test('about as many are published per second as were asked for', async (t) => {
  const hub = new HubFixture();
  const publisher = publisherTo(t, await hub.start(t), { perSecond: 1000 });
  const begunMs = performance.now();
  publisher.start();
  await until(() => hub.history.length >= 1000, 'publications');
  publisher.stop();
  const elapsedMs = performance.now() - begunMs;
  assert.ok(
    elapsedMs > 900 && hub.history.length < 1.1 * elapsedMs + 20,
    `${hub.history.length} in ${elapsedMs} ms`,
  );
});

test('a number that was refused is used again, and the reason is told', async (t) => {
  const hub = new HubFixture({ refuse: 503 });
  const publisher = publisherTo(t, await hub.start(t), { perSecond: 100 });
  publisher.start();
  await until(() => publisher.counts().failed >= 5, 'refusals');
  hub.refuse = 0;
  await until(() => hub.history.length >= 10, 'publications');
  assert.match(publisher.counts().problem, /^status 503/);
  for (const all of numbersIn(hub).values()) assert.deepEqual(all, all.map((_, i) => i + 1)); // biome-ignore format: one line
});

test('after a publication without an answer, its topic begins again with another publisher', async (t) => {
  const broken = createServer((socket) => socket.once('data', () => socket.destroy()));
  await new Promise((resolve) => broken.listen(0, '127.0.0.1', () => resolve(null)));
  t.after(() => broken.close());
  const { port } = /** @type {import('node:net').AddressInfo} */ (broken.address());
  const publisher = publisherTo(t, port, { perSecond: 100, streams: 1 });
  const [topic] = publisher.topics;
  const before = topic.publisher;
  publisher.start();
  await until(() => publisher.counts().failed > 0, 'a failure');
  publisher.stop();
  await until(() => publisher.pending === 0, 'all answers');
  assert.deepEqual([topic.number, topic.sent], [0, 0]);
  assert.ok(topic.publisher > before);
  assert.notEqual(publisher.counts().problem, '');
});

/** @param {TestContext} t @param {ConstructorParameters<typeof HubFixture>[0]} [how] of the first @returns nodes of one hub, and a publisher to both */
async function twoNodes(t, how) {
  const nodes = [new HubFixture(how)];
  nodes.push(new HubFixture({ other: nodes[0] }));
  const ports = await Promise.all(nodes.map((node) => node.start(t)));
  const urls = ports.map((port) => hubUrl(`http://127.0.0.1:${port}`));
  const publisher = publisherTo(t, 0, { urls, retryMs: 20_000, topics: ['room/{n%4}'], streams: 4 });
  return { nodes, publisher };
}

/** @param {HubFixture} hub */
function assertNumbered(hub) {
  for (const [topic, all] of numbersIn(hub)) assert.deepEqual(all, all.map((_, i) => i + 1), topic); // biome-ignore format: one line
}

test('connections are spread over the hubs, and one whose hub refuses goes on at the next', async (t) => {
  const { nodes, publisher } = await twoNodes(t);
  publisher.start();
  await until(() => nodes.every(({ posted }) => posted.length >= 10), 'publications at both');
  nodes[0].refuse = 503;
  const before = nodes[0].posted.length;
  const all = nodes[0].history.length;
  await until(() => nodes[0].history.length >= all + 50, 'more publications');
  publisher.stop();
  await until(() => publisher.pending === 0, 'answers');
  const { sent, failed, retried, hubs } = publisher.counts();
  assert.deepEqual([nodes[0].posted.length, sent, failed, retried], [before, nodes[0].history.length, 0, 2]);
  assert.deepEqual(hubs.map(({ accepted, refused }) => [accepted, refused]), [[before, 2], [sent - before, 0]]); // biome-ignore format: one line
  assertNumbered(nodes[0]);
});

test('a publication whose answer was lost is sent again with its id, and stored once', async (t) => {
  const { nodes, publisher } = await twoNodes(t, { fault: 'no-answer', every: 3 });
  publisher.start();
  await until(() => publisher.counts().retried >= 2 && nodes[1].history.length >= 50, 'publications');
  publisher.stop();
  await until(() => publisher.pending === 0, 'answers');
  const { sent, failed, hubs } = publisher.counts();
  assert.deepEqual([sent, failed, hubs[0].unanswered], [nodes[0].history.length, 0, 2]);
  assertNumbered(nodes[0]);
});

test('a publication that no hub accepts in time has failed', async (t) => {
  const { nodes, publisher } = await twoNodes(t, { refuse: 503 });
  nodes[1].refuse = 503;
  for (const lane of publisher.lanes) lane.how.retryMs = 300;
  publisher.start();
  await until(() => publisher.counts().failed >= 4, 'failures');
  for (const node of nodes) node.refuse = 0;
  await until(() => nodes[0].history.length >= 20, 'publications');
  assert.ok(publisher.counts().retried >= 8, 'both were tried');
  assertNumbered(nodes[0]);
});

test('an answer that tells what is wrong is final', async (t) => {
  const { nodes, publisher } = await twoNodes(t, { refuse: 400 });
  nodes[1].refuse = 400;
  publisher.start();
  await until(() => publisher.counts().failed >= 5, 'failures');
  assert.equal(publisher.counts().retried, 0);
});

test('an unfinished retry ends with the publisher', async (t) => {
  const { nodes, publisher } = await twoNodes(t, { refuse: 503 });
  nodes[1].refuse = 503;
  publisher.start();
  await until(() => publisher.counts().retried > 0, 'a retry');
  await publisher.close();
  await until(() => publisher.pending === 0, 'the end');
});

test('a hub elsewhere that did not accept load is not published to', async (t) => {
  const publisher = publisherTo(t, 1, { urls: [hubUrl('http://192.0.2.1:8888')] });
  await assert.rejects(publisher.check(), { message: /^refusing to load 192\.0\.2\.1:8888: / });
});

test('the path of a hub is the one of the standard, unless another is given', () => {
  assert.equal(String(hubUrl('http://a:1')), 'http://a:1/.well-known/mercure');
  assert.equal(String(hubUrl('http://a:1/hub?x')), 'http://a:1/hub?x');
});

/**
 * A run of the command against a hub.
 * @param {TestContext} t @param {HubFixture} hub @param {string[]} args
 */
async function runTo(t, hub, ...args) {
  const folder = temporaryFolder(t);
  const file = join(folder, 'report.json');
  const env = {
    ...process.env,
    HOLDFAST_FLEET_DIR: join(folder, 'fleet'),
    HOLDFAST_TOKEN: 'not for the hub',
  };
  const target = ['--target', `127.0.0.1:${await hub.start(t)}`, '--report', file];
  const words = ['fleet/cli.js', 'run', ...target, '--drones', '2', ...args];
  const { exit, output } = run(t, process.execPath, words, { env });
  const { code } = await exit;
  return { code, ...output, report: code === null ? null : JSON.parse(readFileSync(file, 'utf8')) };
}

const LOAD = ['-n', '60', '--topic', 'room/{n%20}', '--publish', '200', '--hold', '3'];

test('a run with churn, tokens and publications finds that each arrived once and in order', async (t) => {
  const hub = new HubFixture({ secret: SECRET });
  const file = join(temporaryFolder(t), 'secret');
  writeFileSync(file, `${SECRET}\n`);
  const { code, stdout, stderr, report } = await runTo(
    t,
    hub,
    ...LOAD,
    '--churn',
    '30',
    '--token-secret',
    `@${file}`,
  );
  assert.equal(code, 0, stdout + stderr);
  const { publications, outcome } = report;
  assert.deepEqual([publications.failed, publications.sent], [0, hub.history.length]);
  assert.ok(publications.sent > 300, `${publications.sent}`);
  assert.equal(outcome.delivered, publications.expected);
  assert.ok(outcome.churned > 30 && outcome.resumed >= outcome.churned - 4, JSON.stringify(outcome));
  assert.deepEqual([report.retried, report.failed.total, report.lost.total], [0, 0, 0]);
  assert.ok(report.percentiles.deliveryMs.count > 0);
  const subjects = new Set(hub.requests.map(({ payload }) => payload.sub));
  assert.deepEqual(subjects, new Set(Array.from({ length: 60 }, (_, n) => `user-${n}`)));
  assert.match(stdout, /^holding .* delivered, delivery p99 [\d.]+ ms/m);
  assert.match(stdout, /^published +\d+ {2}to 20 topics; delivery is measured with the monotonic clock/m);
  assert.match(stdout, /^delivered +[\d,]+ {2}of [\d,]+$/m);
  assert.match(stdout, /^ok: no stream failed or was lost, and each publication arrived once and in order$/m);
});

for (const options of [
  ['--drones', '2'],
  ['--drones', '1', '--publish-batch', '5'],
]) {
  test(`a run against several nodes, of which one dies, finds that each publication arrived once and in order (${options.join(' ')})`, async (t) => {
    const first = new HubFixture();
    const ports = [await first.start(t)];
    const others = [
      new HubFixture({ other: first }),
      new HubFixture({ other: first, fault: 'no-answer', every: 20 }),
    ];
    for (const node of others) ports.push(await node.start(t));
    const folder = temporaryFolder(t);
    const file = join(folder, 'report.json');
    const env = { ...process.env, HOLDFAST_FLEET_DIR: join(folder, 'fleet') };
    const target = ports.map((port) => `127.0.0.1:${port}`).join(',');
    const words = [
      'fleet/cli.js',
      'run',
      '--target',
      target,
      '--report',
      file,
      ...LOAD,
      '--churn',
      '30',
      ...options,
    ];
    const { exit, output } = run(t, process.execPath, words, { env });
    await until(() => first.history.length > 100, 'publications');
    first.nodes.splice(0, 1);
    first.stop();
    const { code } = await exit;
    const report = JSON.parse(readFileSync(file, 'utf8'));
    const { outcome, publications, targets } = report;
    assert.equal(code, 1, 'streams were lost');
    const { duplicated, outOfOrder, strayed, gaps, unseen, restarted } = outcome;
    assert.deepEqual(
      [outcome.lost, duplicated, outOfOrder, strayed, gaps, unseen, restarted],
      [0, 0, 0, 0, 0, 0, 0],
    );
    assert.deepEqual([publications.failed, publications.sent], [0, first.history.length]);
    assert.equal(outcome.delivered, publications.expected);
    assert.ok(publications.retried > 0 && publications.hubs[2].unanswered > 0, JSON.stringify(publications));
    assert.deepEqual([targets.length, targets[0].open, targets[1].open + targets[2].open], [3, 0, 60]);
    assert.ok(targets[0].lost > 10 && report.moved > 20, JSON.stringify(targets));
    assert.match(output.stdout, /^target +open +opened +failed +lost$/m);
    assert.match(output.stdout, /^streams were opened \d+ times at another target than before$/m);
    assert.match(output.stdout, /^requests to +accepted +refused +unanswered$/m);
    assert.match(output.stdout, /^NOT OK: [\d,]+ attempts to open a stream failed; \d+ streams lost$/m);
  });
}

/** @type {[import('./fixtures/hub.js').Fault, number, RegExp][]} */
const FAULTS = [
  ['lose', 100, /NOT OK: \d+ publications? lost(;|$)/m],
  ['duplicate', 100, /NOT OK: \d+ publications? duplicated$/m],
  ['reorder', 100, /NOT OK: \d+ publications? out of order/m],
  ['stray', 100, /NOT OK: \d+ publications? to a stream that does not subscribe$/m],
  ['lose-last', 300, /NOT OK: \d+ publications? missing at the beginning or the end of streams$/m],
];

for (const [fault, every, expected] of FAULTS) {
  test(`a run finds that a hub does this: ${fault}`, async (t) => {
    const { code, stdout } = await runTo(t, new HubFixture({ fault, every }), ...LOAD);
    assert.match(stdout, expected);
    assert.equal(code, 1);
  });
}

test('a run reports the gaps that a hub reports, and what is missing because of them', async (t) => {
  const { code, stdout, report } = await runTo(
    t,
    new HubFixture({ fault: 'gap' }),
    ...LOAD,
    '--churn',
    '100',
  );
  assert.equal(code, 1);
  assert.ok(report.outcome.gaps > 50, JSON.stringify(report.outcome));
  assert.match(stdout, /^gaps reported +\d+/m);
  assert.match(stdout, /NOT OK: the server reported \d+ gaps \(\d+ publications? missing\)/);
});

test('the report says why streams could not be opened: no token, and a token that grants something else', async (t) => {
  const load = ['-n', '4', '--topic', 'room/{n%2}', '--within', '2', '--hold', '0'];
  const without = await runTo(t, new HubFixture({ secret: SECRET }), ...load);
  assert.match(without.stdout, /^failed +\d+ {2}unauthorized \d+$/m);
  const wrong = await runTo(
    t,
    new HubFixture({ secret: SECRET }),
    ...load,
    '--token-secret',
    'another secret',
  );
  assert.match(wrong.stdout, /^failed +\d+ {2}unauthorized \d+$/m);
  assert.deepEqual([without.code, wrong.code], [1, 1]);
});

/** @type {[string[], RegExp][]} */
const BAD = [
  [['--topic', 'a{b}'], /--topic got 'a\{b\}': expected a topic without quotes/],
  [['--topic', '*'], /--topic got '\*': expected a topic/],
  [['--topic', 'a', '--channel', 'b'], /topic and channel exclude each other/],
  [['--token', 'x'], /token needs a topic: .*control-token protects a drone/],
  [['--topic', 'a', '--token', 'a b'], /--token got 'a b': expected a token/],
  [['--topic', 'a', '--token', 'x', '--token-secret', 'y'], /token and token-secret exclude each other/],
  [['--topic', 'a', '--token-shared'], /token-shared needs a token-secret/],
  [['--token-secret', 'x'], /token-secret needs a topic/],
  [['--topic', 'a', '--token-secret', '@/nowhere'], /--token-secret got '@\/nowhere': expected the secret/],
  [['--mercure-legacy'], /mercure-legacy needs a topic/],
  [['--publish', '5'], /--publish needs a --topic/],
  [['--topic', 'a', '--publish-retry', '5'], /--publish-retry needs --publish N/],
  [['--topic', 'a', '--publish-to', 'http://a:1,http://b:1'], /--publish-to needs --publish N/],
  [
    ['--target', '127.0.0.1:1,127.0.0.1:2', '--channel', 'a', '--publish-every', '5'],
    /channels are not shared/,
  ],
  [['--target', '127.0.0.1:1,127.0.0.1:1'], /127\.0\.0\.1:1 was given twice/],
  [
    ['--target', '127.0.0.1:1,nowhere'],
    /--target got '127\.0\.0\.1:1,nowhere': expected a host and its ports/,
  ],
  [['--topic', 'a', '--publish-batch', '5'], /--publish-batch needs --publish N/],
  [['--topic', 'a', '--publish', '5', '--publish-every', '5'], /--publish \(to topics\) and --publish-every/],
  [
    ['--topic', 'a', '--publish', '5', '--publish-batch', '1001'],
    /--publish-batch got '1001': expected a whole number/,
  ],
  [
    ['--topic', 'a', '--publish', '5', '--publish-to', 'x'],
    /--publish-to got 'x': expected the URL of a hub/,
  ],
  [
    ['--topic', 'a', '--token-secret', 'x', '--token-claims', '[]'],
    /--token-claims got '\[\]': expected a JSON object/,
  ],
];

for (const [args, expected] of BAD) {
  test(`run ${args.join(' ')} is an error of one line`, async (t) => {
    const { exit, output } = run(t, process.execPath, ['fleet/cli.js', 'run', '-n', '1', ...args]);
    assert.equal((await exit).code, 1);
    assert.match(output.stderr, expected);
    assert.match(output.stderr, /^fleet: [^\n]+\n$/);
  });
}
