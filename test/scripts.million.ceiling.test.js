import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as after } from 'node:timers/promises';
import { native } from '../native/index.js';
import ceiling from '../scripts/experiments/ceiling.js';
import { Findings } from '../scripts/lab/findings.js';
import { reachedIn } from '../scripts/lab/million/climb.js';
import {
  fewer,
  LEAST_STREAM_BYTES,
  nextTarget,
  readMemory,
  roomIn,
  SPARE,
} from '../scripts/lab/million/room.js';
import { startMillion, workersOf } from './helpers/million.js';
import { run } from './helpers/server.js';
import { until } from './helpers/until.js';

const HELD = { skip: !native && 'the native core is not built' };
const GIGA = 1e9;
const IDLE = { totalBytes: 25 * GIGA, availableBytes: 24 * GIGA, reclaimableBytes: GIGA, tcpPages: 100 };

/** @param {import('node:test').TestContext} t @param {...string} words */
function startRun(t, ...words) {
  return startMillion(t, '--ceiling', '--ramp', '5000', ...words);
}

test('a small run rises to the number that was asked for, and holds it', HELD, async (t) => {
  const { output, report } = startRun(t, '--streams', '200', '--most', '300', '--hold', '2');
  const { outcomes, sentences, notes, charts } = await report();
  for (const phase of ['up 200', 'held 200', 'up 300', 'held 300'])
    assert.ok(output.stderr.includes(`${phase}: `), phase);
  const [{ values }] = outcomes;
  assert.deepEqual([values.held, values.heldLost, values.heldLimits, values.limitAt], [300, 0, 0, null]);
  for (const figure of ['leftBytes', 'heldTickP90Ms', 'cpuPercent', 'usedBytes'])
    assert.ok(values[figure] > 0, figure);
  // It is a difference of the whole machine: other tests may have freed more meanwhile than 300 sockets take.
  assert.ok(Number.isFinite(values.kernelBytes), `${values.kernelBytes}`);
  assert.ok(sentences.includes('No limit was reached: no more were asked for.'), `${sentences}`);
  assert.deepEqual(
    notes.filter((/** @type {string} */ note) => note.startsWith('limit')),
    [],
  );
  assert.ok(charts.includes('memory.svg'), `${charts}`);
});

test(
  'when a step goes wrong, it goes back to the last number that was well, and holds that',
  HELD,
  async (t) => {
    const { output, pid, report } = startRun(t, '--streams', '200', '--hold', '8');
    await until(() => /held (300|450): /.test(output.stderr), 'a second number is held');
    const workers = workersOf(pid);
    assert.equal(workers.length, 1);
    process.kill(workers[0], 'SIGKILL');
    const { outcomes, notes, sentences } = await report();
    const [{ values }] = outcomes;
    assert.equal(values.streams, 1, `${notes}`);
    assert.ok(values.limitAt > values.held && values.held >= 200, `${values.limitAt}, ${values.held}`);
    assert.deepEqual([values.heldLost, values.heldLimits], [0, 0], 'after that nothing is wrong');
    assert.match(notes.join('\n'), /^limit at \d+ streams: streams \(\d+ were lost\)$/m);
    assert.match(sentences.join('\n'), /what prevents it is streams\.$/m);
  },
);

test('when something goes wrong while they are held for long, fewer are held', HELD, async (t) => {
  const { output, pid, report } = startRun(t, '--streams', '200', '--most', '200', '--hold', '4');
  await until(() => output.stderr.includes('] held: '), 'they are held for long');
  const [worker] = workersOf(pid);
  process.kill(worker, 'SIGKILL');
  const { outcomes, notes } = await report();
  const [{ values }] = outcomes;
  assert.deepEqual([values.limitAt, values.held, values.heldLost, values.heldLimits], [200, 192, 0, 0]);
  assert.match(notes.join('\n'), /^limit at 200 streams: streams \(200 were lost\)$/m);
});

test('a number that had late ticks is tried out again, and may be well then', HELD, async (t) => {
  const { output, pid, report } = startRun(t, '--streams', '200', '--most', '200', '--hold', '8');
  await until(() => output.stderr.includes('] up 200: '), 'they are opened');
  const [worker] = workersOf(pid);
  while (!output.stderr.includes('tried out again')) {
    process.kill(worker, 'SIGSTOP');
    await after(100);
    process.kill(worker, 'SIGCONT');
    await after(5);
  }
  const { outcomes, notes } = await report();
  const [{ values }] = outcomes;
  assert.deepEqual([values.held, values.limitAt, values.heldLost], [200, null, 0], `${notes}`);
  assert.match(notes.join('\n'), /^200 streams were tried out again: ticks \(p90 was \d+ ms\)$/m);
});

test('only a run that rises can be told where to stop', async (t) => {
  const { exit, output } = run(t, process.execPath, [
    'scripts/million.js',
    '--most',
    '100',
    '--own-network',
    'off',
  ]);
  assert.equal((await exit).code, 1);
  assert.equal(output.stderr, 'million: got --most: expected it with --ceiling; other runs have --streams\n');
});

test('kernel objects of sockets that only seem to be available leave no room', () => {
  const now = { ...IDLE, availableBytes: 16 * GIGA, reclaimableBytes: 2 * GIGA };
  const { freeBytes, usedBytes, streamBytes, fits, what } = roomIn(
    IDLE,
    now,
    1_000_000,
    Number.POSITIVE_INFINITY,
  );
  assert.deepEqual([freeBytes, usedBytes, streamBytes, what], [15 * GIGA, 9 * GIGA, 9000, 'memory']);
  assert.equal(fits, 1_000_000 + Math.floor((15 * GIGA - 25 * GIGA * SPARE) / 9000));
});

test('when few streams are held, what they seem to take is not believed', () => {
  for (const held of [0, 10]) {
    const { streamBytes, fits } = roomIn(IDLE, { ...IDLE, availableBytes: 24.1 * GIGA }, held);
    assert.equal(streamBytes, LEAST_STREAM_BYTES);
    assert.ok(fits < 24.1e9 / LEAST_STREAM_BYTES + held, `${fits}`);
  }
});

test('the buffers of sockets may be the limit', () => {
  const now = { ...IDLE, availableBytes: 16 * GIGA, tcpPages: 150_100 };
  const room = roomIn(IDLE, now, 1_000_000, 300_100);
  assert.deepEqual([room.fits, room.what], [2_000_000, 'TCP memory']);
});

test('steps are large at first and small at the end, and the last one is the first that does not fit', () => {
  const fits = 2_750_000;
  const targets = [1_000_000];
  while (targets[targets.length - 1] <= fits)
    targets.push(Number(nextTarget(targets[targets.length - 1], fits, 0)));
  const beyond = Number(targets.pop());
  const last = targets[targets.length - 1];
  assert.equal(targets[1], 1_500_000);
  assert.ok(beyond > fits && beyond <= last * 1.041, `${last}, ${beyond}`);
  assert.ok(last > fits * 0.96 && targets.length < 10, `${targets}`);
});

test('fewer are 4 % fewer', () => {
  assert.deepEqual([2_500_000, 2_600_000, 200, 1].map(fewer), [2_400_000, 2_490_000, 192, 1]);
});

test('it stops with the number that was asked for', () => {
  assert.equal(nextTarget(15_000, 1e6, 50_000), 22_500);
  assert.equal(nextTarget(49_000, 1e6, 50_000), 50_000);
  assert.equal(nextTarget(50_000, 1e6, 50_000), null);
  assert.equal(nextTarget(1, 10, 0), 2);
});

test('the memory of this machine can be read', () => {
  const { totalBytes, availableBytes, reclaimableBytes } = readMemory();
  assert.ok(availableBytes > 0 && availableBytes <= totalBytes && reclaimableBytes > 0);
});

test('what was beyond its limit in a phase is named', () => {
  const row = { cpuIdlePercent: 1, tickP90Ms: 60, refused503: 0 };
  const lost = /** @type {any} */ ({ closed: 3 });
  const phase = /** @type {any} */ ({
    rows: [row],
    serverCpuPercent: 150 * 64,
    dronesCpuPercent: 0,
    latenessMs: { count: 10, p99: 201 },
    load: { counts: { lost, open: 97 } },
  });
  const found = reachedIn({ held: phase }, 'held', { target: 100, lost: 1 });
  assert.deepEqual([...found.keys()], ['CPU', 'lateness', 'ticks', 'streams']);
  assert.equal(found.get('streams'), '2 were lost');
  const quiet = {
    ...phase,
    rows: [{ ...row, cpuIdlePercent: 100, tickP90Ms: 11 }],
    latenessMs: { count: 0, p99: 0 },
  };
  const well = { ...quiet, load: { counts: { lost, open: 100 } } };
  assert.equal(reachedIn({ held: well }, 'held', { target: 100, lost: 3 }).size, 0);
});

test('the report names what prevents the next step, and what it would need', () => {
  const values = {
    held: 2_600_000,
    limitAt: 2_700_000,
    memory: 1,
    leftBytes: 0.9e9,
    spareBytes: 0.75e9,
    nextBytes: 0.83e9,
    heldLost: 0,
    heldLimits: 0,
  };
  const text = ceiling
    .read(new Findings(ceiling.figures, ['ceiling'], [{ run: 'ceiling', repeat: 1, values }]))
    .join('\n');
  assert.match(text, /^The next step would have been 2,700,000 streams; what prevents it is memory\.$/m);
  assert.match(
    text,
    /^900 MB of memory were left, of which 750 MB have to stay free, and the next step needs 830 MB\./m,
  );
  const none = ceiling.read(
    new Findings(
      ceiling.figures,
      ['ceiling'],
      [{ run: 'ceiling', repeat: 1, values: { held: 0, limitAt: 1000, memory: 1 } }],
    ),
  );
  assert.deepEqual(none, ['Even 1,000 streams were too many here: the limit was memory.']);
});
