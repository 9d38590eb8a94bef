/*
 * The million runs with publications, in small, and their pure parts.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as after } from 'node:timers/promises';
import { windowBytesOf } from '../hub/serveroptions.js';
import { native } from '../native/index.js';
import { Turns } from '../scripts/lab/helpers/turns.js';
import { findCommand } from '../scripts/lab/install.js';
import { faultValues, requestsFor, roomsFor, topicsFor } from '../scripts/lab/million/publications.js';
import { isGood } from '../scripts/lab/million/rooms.js';
import { searched } from '../scripts/lab/million/search.js';
import { sendValues } from '../scripts/lab/million/spread.js';
import { cellsOf, stepsIn, valuesOfSteps } from '../scripts/lab/million/steps.js';
import { startMillion, workersOf } from './helpers/million.js';
import { until } from './helpers/until.js';

const NATIVE = { skip: !native && 'the native core is not built' };

/** @param {import('node:test').TestContext} t @param {...string} words */
async function report(t, ...words) {
  const { outcomes, text } = await startMillion(t, ...words).report();
  return { values: outcomes[0].values, text };
}

/** @param {Record<string, number>} values */
function faultsIn({ undelivered, missed, duplicated, outOfOrder, gaps, lost }) {
  return { undelivered, missed, duplicated, outOfOrder, gaps, lost };
}
const NO_FAULTS = { undelivered: 0, missed: 0, duplicated: 0, outOfOrder: 0, gaps: 0, lost: 0 };

test('rooms: a small run finds a rate, holds it, and everybody is present', NATIVE, async (t) => {
  const { values, text } = await report(t, '--rooms', '--streams', '500', '--ramp', '1000', '--hold', '2');
  assert.deepEqual(faultsIn(values), NO_FAULTS);
  assert.deepEqual([values.open, values.leastPresent, values.mostPresent], [500, 100, 100]);
  const positive = [
    'deliveryRate',
    'publicationRate',
    'deliveryP99Ms',
    'cpuPercent',
    'publisherPercent',
    'sendUs',
  ];
  for (const figure of positive) assert.ok(values[figure] > 0, figure);
  assert.ok(
    Math.abs(values.deliveryRate / values.publicationRate - 50.5) < 0.01,
    'a room and a single stream',
  );
  const steps = stepsIn(values);
  assert.equal(
    values.bestRate,
    searched(
      20_000,
      steps.map(({ good }) => good === 1),
    ).best,
  );
  assert.match(text, /^\| 20,000\/s \| [\d,]+\/s \| /m);
  assert.match(text, /steps\.svg/);
  if (findCommand('cargo')) assert.match(text, /relative to the bare loops \| - \| \d/);
});

test('rooms: when a rate turns out to be too much, less is held', NATIVE, async (t) => {
  const words = ['--streams', '500', '--ramp', '1000', '--hold', '3'];
  const { output, pid, report } = startMillion(t, '--rooms', ...words);
  await until(() => output.stderr.includes('] held: '), 'a rate is held');
  const [worker] = workersOf(pid);
  process.kill(worker, 'SIGSTOP');
  await after(1000);
  process.kill(worker, 'SIGCONT');
  const { outcomes, text } = await report();
  const [{ values }] = outcomes;
  const [, tooMuch] =
    text.match(/^([\d,]+) deliveries per second were too many to hold: p99 was \d+ ms/m) ?? [];
  assert.ok(tooMuch, text);
  assert.ok(values.deliveryRate <= 0.9 * Number(tooMuch.replaceAll(',', '')), `${values.deliveryRate}`);
  assert.deepEqual(faultsIn(values), NO_FAULTS);
});

test('storm: streams that are cut off come back and recover everything', NATIVE, async (t) => {
  const { values } = await report(t, '--storm', '--streams', '400', '--ramp', '1000', '--hold', '2');
  assert.deepEqual(faultsIn(values), NO_FAULTS);
  assert.deepEqual([values.open, values.cut, values.resumed, values.restarted], [400, 120, 120, 0]);
  assert.ok(
    values.recovered >= 120,
    `${values.recovered} publications were missed, and everyone missed some`,
  );
  assert.ok(
    values.openS > 0 && values.recoveredS >= values.openS && values.recoveredS < 40,
    `${values.recoveredS}`,
  );
});

test('the search goes up by a quarter, tries a rate that failed again, and then halves the interval', () => {
  assert.deepEqual(searched(1000, []), { best: 0, next: 1000 });
  assert.deepEqual(searched(1000, [true, true]), { best: 1250, next: 1563 });
  assert.deepEqual(searched(1000, [true, false]), { best: 1000, next: 1250 }, 'once more');
  assert.deepEqual(searched(1000, [true, false, true]), { best: 1250, next: 1563 });
  assert.deepEqual(searched(1000, [true, false, false]), { best: 1000, next: 1118 });
  assert.deepEqual(searched(1000, [true, false, false, true]), { best: 1118, next: 1182 });
  assert.deepEqual(searched(1000, [true, false, false, true, false]), { best: 1118, next: 1182 });
  assert.deepEqual(searched(1000, [true, false, false, true, false, false]), { best: 1118, next: null });
  assert.deepEqual(searched(1000, [true, false, false, false, true, true]), { best: 1182, next: null });
});

test('the search ends if nothing is good, and after many steps', () => {
  assert.deepEqual(searched(1000, [false, false]), { best: 0, next: null });
  assert.ok(searched(1000, Array(40).fill(true)).next === null);
  assert.deepEqual(searched(1000, [true, true, true], 3), { best: 1563, next: null });
});

test('a step is good only if all of its figures are', () => {
  const good = { keptPercent: 99, arrived: 1, deliveryP99Ms: 100, latenessP99Ms: 100, tickP99Ms: 50 };
  assert.ok(isGood(good));
  assert.ok(isGood({ ...good, latenessP99Ms: null }), 'no ping was due');
  for (const bad of [
    { keptPercent: 97 },
    { arrived: 0 },
    { deliveryP99Ms: 101 },
    { latenessP99Ms: 101 },
    { tickP99Ms: 51 },
  ])
    assert.ok(!isGood({ ...good, ...bad }), JSON.stringify(bad));
});

test('the CPU of a send is that of both ends', () => {
  assert.deepEqual(sendValues(120, 60_000, 2), { sendUs: 20, mostSends: 100_000 });
  assert.deepEqual(sendValues(120, 0), { sendUs: null, mostSends: null });
});

test('steps are kept among the values of a run', () => {
  const steps = [
    { wanted: 20_000, p99: 1.5 },
    { wanted: 25_000, p99: null },
  ];
  /** @type {import('../scripts/lab/experiment.js').Values} */
  const values = { open: 5, ...valuesOfSteps(steps) };
  assert.equal(values['step 2 wanted'], 25_000);
  assert.deepEqual(stepsIn(values), steps);
  assert.deepEqual(stepsIn({ open: 5 }), []);
  const columns = [
    { name: 'wanted', text: '', unit: /** @type {const} */ ('1/s') },
    { name: 'p99', text: '', unit: /** @type {const} */ ('ms') },
  ];
  assert.deepEqual(cellsOf(steps[1], columns), ['25,000/s', '-']);
});

test('each connection of the publisher has its own topics, in turn, with a number for each publication', () => {
  const taken = (/** @type {number} */ lane) => {
    const turns = new Turns({ topic: 'rooms/{n}/x', topics: 5, streams: 12 }, lane, 2);
    return Array.from({ length: 4 }, () => Object.values(turns.next()).join(' '));
  };
  assert.deepEqual(taken(0), ['rooms/0/x 1 3', 'rooms/2/x 1 2', 'rooms/4/x 1 2', 'rooms/0/x 2 3']);
  assert.deepEqual(taken(1), ['rooms/1/x 1 3', 'rooms/3/x 1 2', 'rooms/1/x 2 3', 'rooms/3/x 2 2']);
  assert.equal(new Turns({ topic: '{n}', topics: 3 }, 0, 1).next().streams, 0, 'nobody has said how many');
});

test('rooms have 100 streams, and what is missing at the end is a fault whatever clients have noticed', () => {
  assert.deepEqual([roomsFor(1_000_000), roomsFor(500), roomsFor(501)], [10_000, 5, 6]);
  assert.deepEqual(topicsFor(500), ['rooms/{n%5}', 'users/{n}']);
  assert.equal(requestsFor(50_500), 100, '1,000 publications in batches of 10');
  const counts = {
    delivered: 90,
    missed: 1,
    discarded: 2,
    duplicated: 3,
    outOfOrder: 4,
    strayed: 5,
    gaps: 6,
  };
  const both = /** @type {import('../fleet/ask.js').Counts[]} */ (/** @type {unknown} */ ([counts, counts]));
  assert.deepEqual(faultValues(200, both), {
    undelivered: 20,
    missed: 6,
    duplicated: 6,
    outOfOrder: 18,
    gaps: 12,
  });
});

test('a worker has a quarter of the history at hand, within limits', () => {
  const windows = [0, 67_108_864, 100_000_000, 2 ** 40].map((historyBytes) =>
    windowBytesOf({ historyBytes }),
  );
  assert.deepEqual(windows, [16_777_216, 16_777_216, 25_000_000, 67_108_864]);
});
