/*
 * The trial of the storm: some of the streams are cut off at once, stay away for a while, and all come back together for what they
 * missed, while publications go on. They have drones of their own, so what the other streams notice is measured separately.
 */
import { sumOf } from '../../../fleet/drone/causes.js';
import { startLoad } from '../load.js';
import { networkOfMany } from '../namespace.js';
import { cpuUs, lowerPriority, pssBytes } from '../processes.js';
import { change, hold, rest } from '../steps.js';
import { deliveryValues, faultValues, Publications, roomsFor, topicsFor } from './publications.js';
import { onStage } from './stage.js';
import { latenessValues, pauseValues, tickValues } from './values.js';

/** Of the streams. */
const CUT_SHARE = 0.3;
/** Publications, half of them to rooms. */
export const PER_SECOND = 100;
/** While clients are away: so all of them miss something, in a time that is not too long. */
export const PER_SECOND_AWAY = 1000;
/** In addition to the time in which each room gets a publication. */
const SPARE_AWAY_S = 1;
/** Enough for the opening of all streams in the worst case. */
const PATIENCE_MS = 300_000;
const POLL_MS = 100;
const QUIET_MS = 3000;

/** @typedef {import('../experiment.js').Trial} Trial */
/** @typedef {import('../experiment.js').Values} Values */
/** @typedef {import('../load.js').Load} Load */
/** @typedef {import('./stage.js').Watch} Watch */

/** @param {Trial} trial @param {number} pingIntervalMs @returns {Promise<Values>} */
export async function trialOfStorm(trial, pingIntervalMs) {
  const { lab, plan } = trial;
  const cut = Math.round(plan.streams * CUT_SHARE);
  const stay = plan.streams - cut;
  const publications = new Publications(lab, plan.streams);
  const topic = topicsFor(plan.streams);
  /** @type {Values} */
  let found = {};
  const { phases, watch } = await onStage(trial, { params: { topic } }, async (watch) => {
    const { stage } = watch;
    const { port, adminPort } = stage.server;
    const params = { interval: String(pingIntervalMs), host: networkOfMany().hosts, topic };
    const others = await startLoad(lab, { port, most: cut, ramp: plan.ramp, params, first: stay });
    await publications.aim(adminPort);
    await watch.during('idle', () => rest('idle', plan.idleS).run(stage));
    await watch.during('up', async () => {
      await change(stage, stay);
      await change({ ...stage, load: others }, cut);
    });
    let finish = publications.begin(PER_SECOND);
    const publishAt = async (/** @type {number} */ perSecond) => {
      await finish();
      finish = publications.begin(perSecond);
    };
    await watch.during('before', () => hold('before', plan.holdS).run(stage));
    const storm = await ride(watch, publications, others, publishAt);
    await watch.during('after', () => hold('after', plan.holdS / 2).run(stage));
    await finish();
    await publications.untilDelivered([stage.load, others]);
    found = { ...storm, ...(await totals(publications, [stage.load, others])) };
    await others.close();
    await publications.stop();
  });
  const { idle, before, storm, up } = phases;
  return {
    ...found,
    upS: up.tookMs / 1000,
    userBytes: (before.serverPssBytes - idle.serverPssBytes) / plan.streams,
    ...latenessValues(storm),
    beforeLatenessP99Ms: latenessValues(before).latenessP99Ms,
    ...deliveryValues(storm),
    beforeDeliveryP99Ms: deliveryValues(before).deliveryP99Ms,
    ...tickValues('storm', storm),
    cpuPercent: storm.serverCpuPercent,
    ...pauseValues(storm, watch.pauses),
  };
}

/**
 * The storm itself.
 * @param {Watch} watch @param {Publications} publications @param {Load} others those that are cut off
 * @param {(perSecond: number) => Promise<void>} publishAt
 * @returns {Promise<Values>}
 */
async function ride(watch, publications, others, publishAt) {
  const { lab, stage } = watch;
  const loads = [stage.load, others];
  const awayS = SPARE_AWAY_S + roomsFor(stage.plan.streams) / (PER_SECOND_AWAY / 2);
  const pids = () => loads.flatMap((load) => load.pids());
  const [cpuBefore, publisherBefore, begunMs] = [cpuUs(pids()), publications.cpuUs(), performance.now()];
  const recoveredBefore = (await others.pollCounts()).recovered;
  let [cutMs, noticedMs, openMs, recoveredMs] = [0, 0, 0, 0];
  await watch.duringWatched('storm', async () => {
    const restore = lowerPriority(others.pids());
    cutMs = await timed(async () => {
      await others.keepAway(true);
      await others.untilThere(PATIENCE_MS);
    });
    noticedMs = await timed(() => untilNoticed(watch, stage.load.target));
    await publishAt(PER_SECOND_AWAY);
    await lab.sleep(awayS * 1000);
    await publishAt(PER_SECOND);
    restore();
    const backMs = performance.now();
    openMs = await timed(async () => {
      await others.keepAway(false);
      await others.untilThere(PATIENCE_MS);
    });
    recoveredMs = (await untilRecovered(lab, others)) - backMs;
  });
  const percent = (/** @type {number} */ us) => us / (performance.now() - begunMs) / 10;
  const { recovered, resumed, restarted } = await others.pollCounts();
  return {
    cut: others.streams,
    cutS: cutMs / 1000,
    noticedS: noticedMs / 1000,
    awayS,
    openS: openMs / 1000,
    recoveredS: recoveredMs / 1000,
    recovered: recovered - recoveredBefore,
    resumed,
    restarted,
    dronesPercent: percent(cpuUs(pids()) - cpuBefore),
    publisherPercent: percent(publications.cpuUs() - publisherBefore),
  };
}

/** The server has seen that those who were cut off are gone. @param {Watch} watch @param {number} left */
async function untilNoticed({ lab, stage }, left) {
  const endMs = performance.now() + PATIENCE_MS;
  while (performance.now() < endMs) {
    const totals = await stage.server.totals();
    if (totals && totals.streams <= left) return;
    await lab.sleep(POLL_MS);
  }
}

/**
 * Streams that are open again get what they missed, until nothing of it arrives any more. Whether it was all of it turns out at the end.
 * @param {import('../lab.js').Lab} lab @param {Load} others
 * @returns {Promise<number>} when the last of it arrived
 */
async function untilRecovered(lab, others) {
  let [before, lastMs] = [-1, 0];
  for (;;) {
    const { recovered } = await others.pollCounts();
    const nowMs = performance.now();
    if (recovered > before) lastMs = nowMs;
    else if (nowMs - lastMs > QUIET_MS) return lastMs;
    before = recovered;
    await lab.sleep(POLL_MS);
  }
}

/** @param {() => Promise<unknown>} act @returns {Promise<number>} ms */
async function timed(act) {
  const begunMs = performance.now();
  await act();
  return performance.now() - begunMs;
}

/** @param {Publications} publications @param {Load[]} loads @returns {Promise<Values>} */
async function totals(publications, loads) {
  const counts = await Promise.all(loads.map((load) => load.pollCounts()));
  const sum = (/** @type {(one: import('../../../fleet/ask.js').Counts) => number} */ read) =>
    counts.reduce((total, one) => total + read(one), 0);
  return {
    open: sum(({ open }) => open),
    failed: sum(({ failed }) => sumOf(failed)),
    lost: sum(({ lost }) => sumOf(lost)),
    dronesBytes: pssBytes(loads.flatMap((load) => load.pids())) / sum(({ open }) => open),
    ...faultValues(publications.expected, counts),
  };
}
