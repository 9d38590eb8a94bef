/*
 * The slot of one worker. When a worker dies, its slot gets a new process.
 */

import { performance } from 'node:perf_hooks';
import { Asks, failedIn } from '../lib/asks.js';

const BACK_OFF_MIN_MS = 100;
const BACK_OFF_MAX_MS = 10_000;
/** After a worker has lived this long, the next back-off is the shortest again. */
const STEADY_MS = 60_000;

/** @typedef {import('../lib/counters.js').Snapshot} Snapshot */

/**
 * @typedef {object} Slot
 * @property {number} id from 1
 * @property {import('../lib/states.js').WorkerState} state
 * @property {import('node:cluster').Worker} process
 * @property {import('../broker/server.js').BrokerServer} broker that feeds it
 * @property {number} pid 0 if the fork failed
 * @property {number} startedMs on performance's clock
 * @property {number} failures consecutive
 * @property {number} askedId id of the sample request that has no answer yet; 0 if there is none
 * @property {number} silentFrames frames in a row without an answer
 * @property {Snapshot | null} snapshot the last one of this process
 * @property {Snapshot[]} unread those not used in a frame yet
 * @property {boolean} takesOver whether it has started without listening, to get the streams of another worker
 * @property {Asks} asks what a handover asks of it
 * @property {number} received streams that another worker has handed over to it
 * @property {string} crash what its JS has thrown; '' if it has not
 * @property {boolean} drained it has sent its last message
 * @property {NodeJS.Timeout | undefined} timer of the back-off, or of the start
 */

/**
 * @param {number} id @param {number} failures @param {import('node:cluster').Worker} process
 * @param {import('../broker/server.js').BrokerServer} broker @param {boolean} takesOver
 * @returns {Slot}
 */
export function makeSlot(id, failures, process, broker, takesOver) {
  const pid = process.process.pid ?? 0;
  const asks = new Asks(
    (message) => {
      if (process.isConnected()) process.send(message);
    },
    failedIn(`worker ${id} (pid ${pid})`),
  );
  return {
    id,
    state: 'forked',
    process,
    broker,
    pid,
    startedMs: performance.now(),
    failures,
    askedId: 0,
    silentFrames: 0,
    snapshot: null,
    unread: [],
    takesOver,
    asks,
    received: 0,
    crash: '',
    drained: false,
    timer: undefined,
  };
}

/** @param {Slot} slot @param {Snapshot} snapshot from its worker */
export function keepSnapshot(slot, snapshot) {
  slot.snapshot = snapshot;
  slot.unread.push(snapshot);
}

/** @param {Slot} slot of a worker that died @returns {{ failures: number, delayMs: number }} for the next one */
export function backOff({ startedMs, failures: before }) {
  const failures = performance.now() - startedMs > STEADY_MS ? 1 : before + 1;
  return { failures, delayMs: Math.min(BACK_OFF_MAX_MS, BACK_OFF_MIN_MS * 2 ** (failures - 1)) };
}

/** @param {Slot} slot @returns {string} for people */
export function nameOf({ id, pid }) {
  return `worker ${id} (pid ${pid})`;
}
