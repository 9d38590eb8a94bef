import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Pinger } from '../transport/pinger.js';
import { Wheel } from '../transport/wheel.js';

/** @param {number} count @param {number} intervalMs */
function wheelOf(count, intervalMs) {
  /** @type {Wheel<{ id: number, slot: number, place: number }>} */
  const wheel = new Wheel(intervalMs, 0);
  const seats = Array.from({ length: count }, (_, id) => ({ id, slot: -1, place: 0 }));
  for (const seat of seats) wheel.add(seat);
  return { wheel, seats };
}

/**
 * Turns a wheel from one time to another, a step of 10 ms at a time.
 * @param {Wheel<{ id: number, slot: number, place: number }>} wheel
 * @param {number} fromMs @param {number} toMs
 * @returns {{ id: number, atMs: number }[]}
 */
function visitsOf(wheel, fromMs, toMs) {
  /** @type {{ id: number, atMs: number }[]} */
  const visits = [];
  for (let atMs = fromMs + 10; atMs <= toMs; atMs += 10)
    wheel.turn(
      () => atMs,
      ({ id }) => visits.push({ id, atMs }),
    );
  return visits;
}

test('each seat is visited once per turn, one interval apart', () => {
  const { wheel } = wheelOf(500, 1000);
  const first = visitsOf(wheel, 0, 1000);
  assert.equal(new Set(first.map(({ id }) => id)).size, 500);
  assert.equal(first.length, 500);
  const second = visitsOf(wheel, 1000, 2000);
  const timeOf = new Map(first.map(({ id, atMs }) => [id, atMs]));
  for (const { id, atMs } of second) assert.equal(atMs - Number(timeOf.get(id)), 1000);
});

test('a burst of openings is spread evenly over the interval, whatever its size', () => {
  for (const count of [20, 200, 15_000]) {
    const { wheel } = wheelOf(count, 20_000);
    const tenths = Array(10).fill(0);
    for (const { atMs } of visitsOf(wheel, 0, 20_000)) tenths[Math.min(9, Math.floor((atMs - 1) / 2000))]++;
    for (const tenth of tenths)
      assert.ok(Math.abs(tenth - count / 10) <= Math.max(2, count / 1000), `${count}: ${tenths}`);
  }
});

test('a removed seat is not visited, even if removed during its turn', () => {
  const { wheel, seats } = wheelOf(100, 100);
  for (const seat of seats) if (seat.id % 2) wheel.remove(seat);
  wheel.remove(seats[1]);
  assert.equal(wheel.size, 50);
  /** @type {number[]} */
  const seen = [];
  for (let atMs = 10; atMs <= 200; atMs += 10) {
    wheel.turn(
      () => atMs,
      (seat) => {
        seen.push(seat.id);
        wheel.remove(seat);
      },
    );
  }
  assert.equal(seen.length, 50);
  assert.ok(seen.every((id) => id % 2 === 0));
  assert.deepEqual([...wheel], []);
});

test('lateness is measured from the time a seat was due', () => {
  const { wheel } = wheelOf(1, 10);
  /** @type {number[]} */
  const late = [];
  wheel.turn(
    () => 13,
    (_, lateMs) => late.push(lateMs),
  );
  assert.deepEqual(late, [3]);
});

test('after a stall of several turns each seat is visited once, as late as the oldest visit missed', () => {
  const { wheel } = wheelOf(10, 100);
  /** @type {number[]} */
  const late = [];
  wheel.turn(
    () => 1000,
    (_, lateMs) => late.push(lateMs),
  );
  assert.equal(late.length, 10);
  assert.deepEqual([Math.min(...late), Math.max(...late)], [900, 990]);
  assert.ok(wheel.dueMs > 900, 'the turns that were missed are not made up for');
});

test('an interval of a day has a limited number of slots, and still visits all seats', () => {
  const dayMs = 86_400_000;
  const { wheel } = wheelOf(1000, dayMs);
  assert.ok(wheel.slots.length < 20_000);
  let visits = 0;
  for (let atMs = 60_000; atMs <= dayMs; atMs += 60_000)
    wheel.turn(
      () => atMs,
      () => visits++,
    );
  assert.equal(visits, 1000);
});

test('an interval shorter than a slot has one slot', () => {
  const { wheel } = wheelOf(3, 10);
  assert.equal(visitsOf(wheel, 0, 50).length, 15);
});

test('a pinger has a timer only while there is something to ping, however long its interval', () => {
  /** @type {Pinger<import('../transport/wheel.js').Seat>} */
  const pinger = new Pinger(86_400_000, () => {});
  const seats = [1, 2].map(() => ({ slot: -1, place: 0 }));
  for (const seat of seats) pinger.add(seat);
  pinger.remove(seats[0]);
  assert.notEqual(pinger.timer, undefined);
  pinger.remove(seats[1]);
  assert.equal(pinger.timer, undefined);
  pinger.add(seats[0]);
  assert.notEqual(pinger.timer, undefined);
  pinger.remove(seats[0]);
});
