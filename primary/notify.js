/*
 * What the primary tells a service manager that started it with NOTIFY_SOCKET (sd_notify(3); systemd with Type=notify):
 *
 *     starting --listens--> READY=1 (after a takeover, with MAINPID=…) --every so often--> STATUS=…, WATCHDOG=1 while healthy --drain--> STOPPING=1
 *
 * Node has no unix datagram sockets. The native core sends them in 3 µs, with a socket that it opens once. Without it, the
 * program systemd-notify does: starting it stops the event loop for 10 ms, needs descriptors just when there may be none,
 * and NotifyAccess=all in the unit.
 */
import { spawn } from 'node:child_process';
import { messageOf } from '../lib/errors.js';
import { formatNoun } from '../lib/format.js';

const STATUS_MS = 10_000;
/** Its queue is short, but soon read. */
const AGAIN_MS = 500;
/** sd_watchdog_enabled(3) recommends half of the time after which the service manager acts. */
const WATCHDOG_SHARE = 0.5;
/** systemd sets these. Workers must not have them: only the primary speaks. */
const VARIABLES = ['NOTIFY_SOCKET', 'WATCHDOG_USEC', 'WATCHDOG_PID'];

/** @typedef {Record<string, string | undefined>} Environment */
/** @typedef {(text: string) => boolean} Tell sends variables, one per line; never throws. False if nobody has got them yet */

/**
 * What is needed to know how the server is.
 * @typedef {object} Server
 * @property {{ slots: Pick<import('./slot.js').Slot, 'state' | 'snapshot'>[] }} workers
 * @property {() => string} problem why it is not ready; '' if it is
 */

/**
 * Removes the variables from the environment, so call it before anything is forked.
 * @param {Server & { env: Environment, onNote: (line: string) => void }} options
 * @returns {Promise<Notify | null>} null if nobody wants to know
 */
export async function openNotify({ env, onNote, ...server }) {
  const [path = '', watchdogUsec = '0', watchdogPid] = VARIABLES.map((name) => env[name]);
  for (const name of VARIABLES) delete env[name];
  if (path === '') return null;
  const isWatched = watchdogPid === undefined || Number(watchdogPid) === process.pid;
  const tell = await openTell(path, env, onNote);
  return tell && new Notify({ ...server, tell, watchdogMs: isWatched ? Number(watchdogUsec) / 1000 : 0 });
}

export class Notify {
  /** @param {Server & { tell: Tell, watchdogMs: number }} options watchdogMs: the service manager restarts the server if it hears nothing for that long; 0 if it does not */
  constructor({ workers, problem, tell, watchdogMs }) {
    this.workers = workers;
    this.problem = problem;
    this.tell = tell;
    this.watchdogMs = 0;
    this.isWatched = false;
    this.periodMs = STATUS_MS;
    this.watch(watchdogMs);
    /** @type {NodeJS.Timeout | undefined} */
    this.timer = undefined;
    /** The last step that the service manager has not got yet, because its queue was full; '' for none. */
    this.step = '';
  }

  /** The server listens. */
  ready() {
    this.begin('READY=1\n');
  }

  /** It has taken over from another one, which the service manager knew. @param {number} watchdogMs as that one was told; 0 for none */
  tookOver(watchdogMs) {
    if (watchdogMs > 0) this.watch(watchdogMs);
    this.begin(`MAINPID=${process.pid}\nREADY=1\n`);
  }

  /** @param {string} step */
  begin(step) {
    this.take(step);
    this.timer = setInterval(() => this.say(), this.periodMs).unref();
  }

  /** @param {number} watchdogMs */
  watch(watchdogMs) {
    this.watchdogMs = watchdogMs;
    this.isWatched = watchdogMs > 0;
    this.periodMs = this.isWatched ? Math.min(STATUS_MS, watchdogMs * WATCHDOG_SHARE) : STATUS_MS;
  }

  /** Another server tells the service manager now. */
  rest() {
    clearInterval(this.timer);
    this.timer = undefined;
  }

  /** The other server is gone: this one tells it again. */
  resume() {
    this.tookOver(this.watchdogMs);
  }

  /** The drain begins; the watchdog goes on. @param {number} mostMs how long it may take */
  stopping(mostMs) {
    this.take(`STOPPING=1\nEXTEND_TIMEOUT_USEC=${Math.ceil(mostMs * 1000)}\n`);
  }

  /** @param {string} step which is repeated until the service manager has got it */
  take(step) {
    this.step = step;
    this.say();
    if (this.step) setTimeout(() => this.step && this.say(), AGAIN_MS).unref();
  }

  say() {
    if (this.tell(`${this.step}${this.state()}`)) this.step = '';
  }

  /** @returns {string} */
  state() {
    const status = `STATUS=${statusOf(this.workers.slots, this.problem())}`;
    return this.isWatched && isHealthy(this.workers.slots) ? `${status}\nWATCHDOG=1` : status;
  }
}

/**
 * That this runs at all means that the primary is not hung. It replaces workers that hang or die, and a server that is behind
 * NATS catches up: a restart would end the streams of all workers. If all are gone for that long, there are no streams.
 * @param {Server['workers']['slots']} slots
 */
function isHealthy(slots) {
  return slots.some(({ state }) => state !== 'dead' && state !== 'forked');
}

/** @param {Server['workers']['slots']} slots @param {string} problem @returns {string} for `systemctl status` */
function statusOf(slots, problem) {
  const streams = slots.reduce((sum, { snapshot }) => sum + (snapshot?.streams ?? 0), 0);
  const load = `${formatNoun(streams, 'stream')}, ${formatNoun(slots.length, 'worker')}`;
  return problem ? `not ready: ${problem}; ${load}` : load;
}

/**
 * @param {string} path @param {Environment} env of programs @param {(line: string) => void} onNote
 * @returns {Promise<Tell | null>} null if the path is of no use
 */
async function openTell(path, env, onNote) {
  if (!/^[/@]/.test(path)) {
    onNote(`NOTIFY_SOCKET=${path} is ignored: expected a path, or @ and a name`);
    return null;
  }
  const report = once((/** @type {unknown} */ error) =>
    onNote(`the service manager can't be notified: ${messageOf(error)}`),
  );
  const { native } = await import('../native/index.js');
  try {
    if (native?.Notifier) return throughNative(new native.Notifier(path), report);
  } catch (error) {
    report(error);
    return null;
  }
  return throughProgram({ ...env, NOTIFY_SOCKET: path }, report);
}

/** @param {import('../native/types.js').Notifier} notifier @param {(error: unknown) => void} report @returns {Tell} */
function throughNative(notifier, report) {
  return (text) => {
    try {
      return notifier.tell(text);
    } catch (error) {
      report(error);
      return true; // it would fail again
    }
  };
}

/** @param {Environment} env with NOTIFY_SOCKET @param {(error: unknown) => void} report @returns {Tell} */
function throughProgram(env, report) {
  return (text) => {
    try {
      const child = spawn('systemd-notify', ['--', ...text.split('\n')], { env, stdio: 'ignore' });
      child.on('error', report).unref();
    } catch (error) {
      report(error);
    }
    return true;
  };
}

/** Only the first problem is worth a line. @param {(error: unknown) => void} act @returns {(error: unknown) => void} */
function once(act) {
  let isDone = false;
  return (error) => {
    if (!isDone) act(error);
    isDone = true;
  };
}
