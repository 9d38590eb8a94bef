/*
 * Ticks of the event loop: while everything happens at once, and while streams open as fast as they can. Seconds in
 * which the machine itself paused say nothing about the server and are left out.
 */
import { startPauses } from '../pauses.js';
import { PAUSE_MS, sizesOf } from './sizes.js';
import { clientOf, nextTotals, startSubject, stopBoth } from './subjects.js';

const BUSY_PING_INTERVAL_MS = 5000;
const MESSAGE = 'x'.repeat(64);
/** Storms before the first that counts: code gets faster as it runs. */
const WARM_UPS = 3;
/** Storms that count, and how many are tried at most. */
const STORMS = 4;
const MOST_STORMS = 12;

/** @typedef {import('./subjects.js').Round} Round */

/** All streams are pinged, and fanned out to once a second. @param {Round} round */
export async function measureBusyTicks(round) {
  const { lab, plan, record } = round;
  const { high, settleMs, busyS } = sizesOf(plan);
  const subject = await startSubject(round, 'hold', { part: 'ticks', pingIntervalMs: BUSY_PING_INTERVAL_MS });
  const client = clientOf(round, subject);
  const pauses = await startPauses(lab);
  await client.open(high);
  await lab.sleep(settleMs);
  await nextTotals(round, subject);
  let worst = 0;
  let before = await pauses.take();
  for (let second = 0; second < busyS; second++) {
    await subject.publish(MESSAGE);
    const { tickP99Ms, tickMaxMs } = await nextTotals(round, subject);
    const now = await pauses.take();
    // The second that the frame describes began in the previous one.
    const busyPauseMs = Math.max(before, now);
    before = now;
    const isDisturbed = busyPauseMs > PAUSE_MS;
    record('hold', { busyPauseMs, busyTickP99Ms: isDisturbed ? null : tickP99Ms });
    if (!isDisturbed) worst = Math.max(worst, tickMaxMs);
  }
  record('hold', { busyTickMaxMs: worst > 0 ? worst : null });
  await pauses.stop();
  await stopBoth(client, subject);
}

/** Streams open as fast as they can, over and over. @param {Round} round @param {import('./subjects.js').Kind} kind */
export async function measureStormTicks(round, kind) {
  const { lab, plan, record } = round;
  const { high, settleMs } = sizesOf(plan);
  const subject = await startSubject(round, kind, { part: 'storm' });
  const client = clientOf(round, subject);
  const pauses = await startPauses(lab);
  await nextTotals(round, subject);
  let counted = 0;
  for (let storm = 0; storm < MOST_STORMS && counted < STORMS; storm++) {
    await pauses.take();
    const frame = nextTotals(round, subject);
    await client.open(high);
    const { tickP99Ms } = await frame;
    if (storm >= WARM_UPS && (await pauses.take()) <= PAUSE_MS) {
      record(kind, { stormTickP99Ms: tickP99Ms });
      counted++;
    }
    await client.close();
    await lab.sleep(settleMs);
  }
  await pauses.stop();
  await stopBoth(client, subject);
}
