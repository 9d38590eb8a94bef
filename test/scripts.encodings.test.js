import assert from 'node:assert/strict';
import { test } from 'node:test';
import encodings from '../scripts/experiments/encodings.js';
import { kinds } from '../scripts/lab/encodings/subjects.js';
import { judge, pageText, tableText } from '../scripts/lab/encodings/table.js';
import { Findings } from '../scripts/lab/findings.js';
import { planOf } from '../scripts/lab/plan.js';

/** @param {Record<string, Record<string, number | null>[]>} values by run */
function findingsOf(values) {
  const outcomes = Object.entries(values).flatMap(([run, all]) =>
    all.map((one) => ({ run, repeat: 1, values: one })),
  );
  return new Findings(encodings.figures, Object.keys(values), outcomes);
}

const EVENTS = { memoryBytes: 80, openUs: 10, pingUs: 4, deliveryUs: 4 };
const GOOD = {
  events: [EVENTS],
  websocket: [{ memoryBytes: 81, openUs: 11.4, pingUs: 4.4, deliveryUs: 4.1 }],
  bun: [{ memoryBytes: 1000 }],
  uwebsockets: [{ memoryBytes: 300 }],
  poll: [{ memoryBytes: 78, deliveryUs: 6 }],
  'node-http-poll': [{ deliveryUs: 61 }],
};

/** @param {Parameters<typeof findingsOf>[0]} changes @returns {string[]} the targets missed */
function missedWith(changes) {
  const judged = judge(findingsOf({ ...GOOD, ...changes }));
  return judged.filter(({ isMet }) => !isMet).map(({ name, run, than }) => `${name} of ${run}, ${than}`);
}

test('targets are ratios of medians of the same run', () => {
  assert.deepEqual(missedWith({}), []);
  assert.deepEqual(missedWith({ events: [EVENTS, EVENTS, { ...EVENTS, pingUs: 1 }] }), []);
  assert.deepEqual(missedWith({ events: [{ ...EVENTS, openUs: 9.9 }] }), ['openUs of websocket, events']);
  assert.deepEqual(missedWith({ uwebsockets: [{ memoryBytes: 240 }] }), [
    'memoryBytes of websocket, uwebsockets',
  ]);
  assert.deepEqual(missedWith({ 'node-http-poll': [{ deliveryUs: 59 }] }), [
    'deliveryUs of poll, node-http-poll',
  ]);
});

test('what was not measured, or makes no sense, counts as missed', () => {
  assert.deepEqual(missedWith({ bun: [] }), ['memoryBytes of websocket, bun']);
  assert.deepEqual(missedWith({ poll: [{ deliveryUs: -1 }] }), ['deliveryUs of poll, node-http-poll']);
  const [sentence] = encodings.read(findingsOf({ ...GOOD, bun: [] }));
  assert.equal(
    sentence,
    'Targets missed: user memory per stream of WebSocket (not measured, at most a third of WebSocket: Bun).',
  );
});

test('the tables have streams, requests and targets', () => {
  const text = tableText(
    findingsOf({ ...GOOD, answer: [{ perSecond: 90_000, requestUs: 11, memoryBytes: 70 }] }),
  );
  assert.match(
    text,
    /^\| figure \| events \| WebSocket \| WebSocket: Bun \| WebSocket: uWebSockets \| poll \| poll: node:http \|$/m,
  );
  assert.match(text, /^\| CPU per ping \| 4\.0 µs \| 4\.4 µs \| - \| - \| - \| - \|$/m);
  assert.match(text, /^\| user memory per idle connection \| 70 B \|$/m);
  assert.match(
    text,
    /^\| CPU per ping: WebSocket \| at most 1\.15 times events \| 1\.10 times \| reached \|$/m,
  );
  assert.match(
    text,
    /^\| user memory per stream: WebSocket \| at most a third of WebSocket: uWebSockets \| 0\.27 times \| reached \|$/m,
  );
});

test('it is said how many requests were answered', () => {
  const sentences = encodings.read(
    findingsOf({ ...GOOD, answer: [{ perSecond: 90_000 }], 'node-http': [{ perSecond: 30_000 }] }),
  );
  assert.deepEqual(sentences, [
    'Every target was reached.',
    'On one core and 64 kept connections, a Hold whose policy answers each request has answered 90,000/s; node:http 30,000/s.',
  ]);
});

test('each run has a column, and the page says how it was measured', () => {
  const all = Object.fromEntries(kinds().map(({ name }) => [name, [EVENTS]]));
  const findings = findingsOf(all);
  const report = /** @type {any} */ ({
    plan: planOf(/** @type {any} */ ({ ...encodings, name: 'encodings' }), /** @type {any} */ ({})),
    command: 'node scripts/experiment.js encodings',
    facts: { machine: 'a machine' },
    notes: ['something was left out'],
    charts: ['encodings/memory.svg'],
  });
  const text = pageText(report, findings);
  const columns = [...text.matchAll(/^\| figure \|(.*)\|$/gm)].flatMap(([, cells]) => cells.split(' | '));
  assert.equal(columns.length, kinds().length);
  for (const part of [
    'a machine',
    '- Something was left out',
    '(encodings/memory.svg)',
    'from 5,000 to 15,000 streams',
  ])
    assert.ok(text.includes(part), part);
});
