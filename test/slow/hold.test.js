/*
 * npm run test:slow: tests that take minutes or need thousands of descriptors. They need cargo, for the client of the benchmark.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as after } from 'node:timers/promises';
import { buildBare } from '../../scripts/lab/bare.js';
import { Client } from '../../scripts/lab/client.js';
import { Lab } from '../../scripts/lab/lab.js';
import { startServer } from '../helpers/server.js';

const MANY = 60_000;
const CLIENTS = 4;
const STREAMS = 2000;
/** A day has 4,320 pings at 20 s; eight minutes have 4,800 at 100 ms. */
const PING_INTERVAL_MS = 100;
const MINUTES = 8;

/** @param {import('node:test').TestContext} t @returns {Promise<Lab>} with the client built; it ends with the test */
async function openLab(t) {
  const lab = new Lab({ folder: '', signal: new AbortController().signal });
  t.after(() => lab.close());
  assert.equal(await buildBare(lab), '');
  return lab;
}

test('one worker holds 60,000 streams with a limit of 20,000 descriptors per process', async (t) => {
  const lab = await openLab(t);
  const args = ['--transport', 'hold', '--workers', '1', '--streams', String(MANY), '--host', '0.0.0.0'];
  const server = await startServer(t, args, { prefix: ['prlimit', '--nofile=20000:20000'] });
  const clients = Array.from({ length: CLIENTS }, () => new Client(lab, server.port));
  for (const client of clients) await client.open(MANY / CLIENTS);
  const totals = await server.untilTotals(({ streams }) => streams === MANY, `${MANY} streams`);
  t.diagnostic(`${(Number(totals.rssBytes) / 1e6).toFixed(0)} MB RSS of the worker`);
  assert.equal((await server.frame()).workers.length, 1);
  assert.equal(totals.closed, 0);
});

test("2,000 streams survive a day's worth of pings in fast motion, and memory stays flat", async (t) => {
  const lab = await openLab(t);
  const args = ['--transport', 'hold', '--host', '0.0.0.0', '--ping-interval', String(PING_INTERVAL_MS)];
  // Garbage that V8 has not collected yet is not a leak.
  const server = await startServer(t, [...args, '--refresh', '1000', '--gc-interval', '10000'], {
    nodeArgs: ['--expose-gc'],
  });
  const client = new Client(lab, server.port);
  await client.open(STREAMS);
  const rss = [];
  for (let minute = 1; minute <= MINUTES; minute++) {
    await after(60_000);
    const { streams, closed, lost, pings, rssBytes, pingLatenessP99Ms } = (await server.frame()).totals;
    rss.push(Number(rssBytes));
    t.diagnostic(
      `${minute} min: ${streams} streams, ${pings} pings, ${rssBytes} B RSS, lateness p99 ${pingLatenessP99Ms} ms`,
    );
    assert.deepEqual([streams, closed, lost], [STREAMS, 0, 0]);
  }
  const { pings } = (await server.frame()).totals;
  const due = (STREAMS * MINUTES * 60_000) / PING_INTERVAL_MS;
  assert.ok(Number(pings) > due * 0.98, `${pings} pings of ${due}`);
  assert.ok(rss[MINUTES - 1] < rss[0] * 1.05, `RSS grew from ${rss[0]} to ${rss[MINUTES - 1]} bytes`);
});
