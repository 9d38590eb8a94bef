import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Reconciler } from '../fleet/drone/reconcile.js';

const STEP_MS = 100;

/**
 * A simulation in which every opening succeeds or fails after one step, as `isOpened` says.
 * @param {import('../fleet/drone/reconcile.js').Goal} goal
 * @param {(step: number) => boolean} isOpened
 */
function simulate(goal, isOpened) {
  const reconciler = new Reconciler(0, 0, () => 0.5);
  const state = { open: 0, inFlight: 0, opened: 0, failed: 0 };
  /** @type {number[]} */
  const changes = [];
  const turn = (/** @type {number} */ steps) => {
    for (let i = 0; i < steps; i++) {
      const change = reconciler.step(changes.length * STEP_MS, goal, state);
      if (isOpened(changes.length)) {
        state.open += state.inFlight;
        state.opened += state.inFlight;
      } else state.failed += state.inFlight;
      state.inFlight = Math.max(change, 0);
      state.open += Math.min(change, 0);
      changes.push(change);
    }
    return changes;
  };
  return { turn, state, goal, reconciler };
}

const always = () => true;
const never = () => false;
const sum = (/** @type {number[]} */ numbers) => numbers.reduce((a, b) => a + b, 0);

test('opens as many per second as the ramp says, and no more than the target', () => {
  const { turn, state } = simulate({ target: 2500, ramp: 1000, concurrency: 1000 }, always);
  assert.equal(sum(turn(10)), 1000);
  assert.equal(sum(turn(10)), 2000);
  turn(20);
  assert.deepEqual([state.open, state.inFlight], [2500, 0]);
});

test('never opens more at a time than the concurrency allows', () => {
  const { turn } = simulate({ target: 1000, ramp: 100_000, concurrency: 7 }, always);
  assert.ok(turn(20).every((change) => change <= 7));
});

test('a slow ramp opens one stream now and then', () => {
  const { turn } = simulate({ target: 100, ramp: 2, concurrency: 10 }, always);
  assert.equal(sum(turn(50)), 10);
});

test('streams above the target are closed at once, except those still opening', () => {
  const simulation = simulate({ target: 500, ramp: 10_000, concurrency: 500 }, always);
  simulation.turn(5);
  simulation.goal.target = 100;
  simulation.turn(1);
  assert.deepEqual([simulation.state.open, simulation.state.inFlight], [100, 0]);
});

test('streams that fail wait longer and longer, up to half a minute', () => {
  const { turn } = simulate({ target: 1, ramp: 1000, concurrency: 10 }, never);
  const tries = turn(3000).flatMap((change, step) => (change > 0 ? [step * STEP_MS] : []));
  const waits = tries.slice(1).map((ms, i) => ms - tries[i]);
  assert.ok(waits.length > 8 && waits.length < 20, `${waits}`);
  for (let i = 1; i < 6; i++) assert.ok(waits[i] > waits[i - 1], `${waits}`);
  assert.ok(Math.max(...waits) <= 30_000, `${waits}`);
});

test('after an outage, many failed streams are reopened soon', () => {
  const AWAY_STEPS = 50;
  const goal = { target: 1000, ramp: 1_000_000, concurrency: 1_000_000 };
  const { turn, state, reconciler } = simulate(goal, (step) => step > AWAY_STEPS);
  reconciler.random = Math.random;
  turn(2 * AWAY_STEPS);
  assert.equal(state.open, 1000);
});

test('after a success the waits are short again', () => {
  const { turn, reconciler, state } = simulate(
    { target: 1, ramp: 1000, concurrency: 10 },
    (step) => step > 600,
  );
  while (state.opened === 0) turn(1);
  state.open = 0;
  state.failed++;
  const lostMs = reconciler.lastMs;
  turn(1);
  while (state.inFlight === 0) turn(1);
  assert.ok(reconciler.lastMs - lostMs <= 500, `${reconciler.lastMs - lostMs}`);
});

test('lost streams are reopened, but not all at the same moment', () => {
  const draws = [0, 0.25, 0.5, 0.75, 0.99];
  const reconciler = new Reconciler(1000, 0, () => draws[Math.floor(Math.random() * draws.length)]);
  const goal = { target: 1000, ramp: 1_000_000, concurrency: 1_000_000 };
  assert.equal(reconciler.step(0, goal, { open: 1000, inFlight: 0, opened: 1000, failed: 0 }), 0);
  const opened = [];
  let open = 0;
  for (let step = 1; step < 20; step++) {
    const change = reconciler.step(step * STEP_MS, goal, {
      open,
      inFlight: 0,
      opened: 1000 + open,
      failed: 1000,
    });
    opened.push(change);
    open += change;
  }
  assert.equal(open, 1000);
  assert.ok(opened.filter((count) => count > 0).length >= 2, `${opened}`);
  assert.equal(opened[0], 0);
});

test('after the event loop was blocked, not everything missed is opened at once', () => {
  const reconciler = new Reconciler();
  const goal = { target: 1_000_000, ramp: 100, concurrency: 1_000_000 };
  const state = { open: 0, inFlight: 0, opened: 0, failed: 0 };
  reconciler.step(0, goal, state);
  assert.ok(reconciler.step(60_000, goal, state) <= 100);
});
