/*
 * The trials of the run with one publication to everyone: our server with its hub, and bare loops that send as many bytes. Both leave
 * out pings that a publication has taken the place of.
 */
import { HoldfastError } from '../../../lib/errors.js';
import { publish, startPublisher } from '../hub/publishing.js';
import { SECRET, TOPIC } from '../hub/subjects.js';
import { change, hold, rest } from '../steps.js';
import { broadcast, look } from './everyone.js';
import {
  closeStreams,
  endFloors,
  hold as holdFloors,
  openedValues,
  openFloors,
  reach,
  timed,
} from './floor.js';
import { OTHER_SOCKETS, socketsNow, untilGone } from './sockets.js';
import { onStage } from './stage.js';
import { broadcastValues, eventBytesOf, faultValues, textLengthOf, ticksValues } from './times.js';
import { streamValues } from './values.js';

const MOST_BROADCASTS = 5;
const LEAST_BROADCASTS = 2;
/** A short run has fewer. */
const HOLD_S_EACH = 4;
const CHANNEL = 'all';

/** @typedef {import('../experiment.js').Trial} Trial */
/** @typedef {import('../experiment.js').Values} Values */
/** @typedef {import('./everyone.js').Broadcast} Broadcast */

/** Bytes that each client reads for a publication, which the floor of the same lab sends as well. @type {WeakMap<import('../lab.js').Lab, number>} */
const eventBytes = new WeakMap();

/** @param {import('../plan.js').Plan} plan */
export function broadcastsIn({ holdS }) {
  return Math.min(MOST_BROADCASTS, Math.max(LEAST_BROADCASTS, Math.floor(holdS / HOLD_S_EACH)));
}

/** @param {Trial} trial @param {number} pingIntervalMs @returns {Promise<Values>} */
export async function trialOfBroadcasts(trial, pingIntervalMs) {
  const { lab, plan, name } = trial;
  const broadcasts = broadcastsIn(plan);
  /** @type {Broadcast[]} */
  const all = [];
  let pingBytes = 0;
  let isGone = false;
  const { phases } = await onStage(
    trial,
    { args: ['--jwt-secret', SECRET], params: { topic: TOPIC } },
    async (watch) => {
      const { server, load } = watch.stage;
      await watch.during('idle', () => rest('idle', plan.idleS).run(watch.stage));
      const sockets = socketsNow();
      const one = { topic: TOPIC, topics: 1, connections: 1, comesBack: true };
      const publisher = await startPublisher({ lab, plan }, server, one);
      await watch.during('up', () => change(watch.stage, plan.streams));
      const before = await look(load);
      await watch.during('held', () => hold('held', plan.holdS).run(watch.stage));
      pingBytes = bytesPerPing(before, await look(load));
      const audience = {
        lab,
        name,
        load,
        streams: plan.streams,
        pingIntervalMs,
        knowsLateness: true,
        serverPids: () => server.pids(),
        publish: () => publish(publisher, { requests: 1 }),
      };
      for (let i = 1; i <= broadcasts; i++)
        await watch.during(`broadcast ${i}`, async () => all.push(await broadcast(audience)));
      await publisher.ask('leave');
      await publisher.stop();
      await watch.during('down', async () => {
        await change(watch.stage, 0);
        isGone = await untilGone(lab, sockets + OTHER_SOCKETS);
      });
    },
  );
  const bytes = eventBytesOf(all, pingBytes);
  eventBytes.set(lab, bytes);
  const { held, down } = phases;
  return {
    ...streamValues({ up: phases.up, held: phases[`broadcast ${broadcasts}`] }),
    ...faultValues(down.load.counts, broadcasts * plan.streams),
    ...broadcastValues(all, { serverPercent: held.serverCpuPercent, clientsPercent: held.dronesCpuPercent }),
    ...ticksValues(phases, 'broadcast '),
    eventBytes: bytes,
    heldLatenessP99Ms: held.latenessMs.count > 0 ? held.latenessMs.p99 : null,
    downS: isGone ? down.tookMs / 1000 : null,
  };
}

/** @param {import('./everyone.js').Look} before @param {import('./everyone.js').Look} after a time without publications */
function bytesPerPing(before, after) {
  const pings = after.counts.pings - before.counts.pings;
  return pings > 0 ? (after.counts.bytes - before.counts.bytes) / pings : 0;
}

/** @param {Trial} trial @param {number} pingIntervalMs @param {number} mostHoldS @returns {Promise<Values>} @throws {HoldfastError} NO_SIZE */
export async function trialOfFloorBroadcasts(trial, pingIntervalMs, mostHoldS) {
  const { lab, plan, name } = trial;
  const bytes = eventBytes.get(lab);
  if (!bytes) throw new HoldfastError('NO_SIZE', 'our server has not shown how many bytes a publication has');
  const { floors, load, sockets } = await openFloors(trial, pingIntervalMs, { channel: CHANNEL });
  const { opened, ms } = await timed(() => reach(load, plan.streams));
  const held = await holdFloors(lab, floors, load, Math.min(plan.holdS, mostHoldS));
  const audience = {
    lab,
    name,
    load,
    streams: plan.streams,
    pingIntervalMs,
    knowsLateness: false,
    serverPids: floors.pids,
    publish: () => floors.publish(textLengthOf(bytes)),
  };
  const broadcasts = broadcastsIn(plan);
  /** @type {Broadcast[]} */
  const all = [];
  for (let i = 1; i <= broadcasts; i++) {
    lab.status = () => `[${name}] broadcast ${i}: ${load.text()}`;
    all.push(await broadcast(audience));
  }
  const { counts } = await load.pollAll();
  const down = await timed(() => closeStreams(lab, { load, sockets }));
  await endFloors({ floors, load });
  return {
    ...openedValues(counts, { opened, ms }),
    ...broadcastValues(all, { serverPercent: held.cpuPercent, clientsPercent: held.dronesPercent }),
    missing: broadcasts * plan.streams - all.reduce((sum, { delivered }) => sum + delivered, 0),
    eventBytes: bytes,
    downS: down.isGone ? down.ms / 1000 : null,
  };
}
