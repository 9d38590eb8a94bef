/*
 * One worker: a transport and a sampler, controlled by messages from the primary. Started by server.js.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { RemoteBroker } from './broker/remote.js';
import { Hub } from './hub/index.js';
import { RemotePresence } from './hub/presence/remote.js';
import { PAGE } from './hub/protocol/page.js';
import { hubOptions } from './hub/serveroptions.js';
import { selectorsIn } from './hub/streams/audience.js';
import { codeOf, exitWith, HoldfastError, listenError, messageOf } from './lib/errors.js';
import { Sampler } from './lib/sampler.js';
import { NOTHING } from './lib/tops.js';
import { Steps } from './primary/handover/steps.js';
import { dispatch } from './primary/messages.js';
import { withConsent } from './transport/consent.js';
import { createTransport } from './transport/index.js';
import { innerServer, retire } from './transport/inner.js';
import { serve, serveUpgrade } from './transport/serve.js';
import { refusalOf, serverPolicy } from './transport/wire.js';

if (!process.send) {
  exitWith(
    'worker.js',
    new HoldfastError('NO_PRIMARY', 'a worker is started by the primary: run node server.js'),
  );
}

/** The primary must answer sooner than publishers usually stop waiting (5 s). */
const ANSWER_MS = 4000;

/** Connections of publishers end with their next response, or if there is none for so long. Only if another worker has the streams. */
const RETIRE_IDLE_MS = 1000;

/** As soon as it can be prepared for listening. @type {import('./transport/index.js').Transport | null} */
let listener = null;
/** As soon as it can be used. @type {import('./transport/index.js').Transport | null} */
let transport = null;
/** What requests are passed on to. @type {import('node:http').Server | null} */
let inner = null;
/** @type {Sampler | null} */
let sampler = null;
/** @type {RemoteBroker | null} */
let broker = null;
/** With --subscriptions. @type {RemotePresence | null} */
let presence = null;
/** @type {Hub} as soon as there is a transport */
let hub;
/** Moves streams to other workers, and takes theirs. @type {Steps | null} */
let steps = null;
/** The newest certificates. @type {import('./primary/messages.js').Start['secure']} */
let secure = null;
let hasCrashed = false;

// The primary says when to end. Ctrl-C reaches the whole process group, so workers ignore it.
for (const signal of ['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM']) process.on(signal, () => {});
process.on('disconnect', () => process.exit(0));
for (const event of ['uncaughtException', 'unhandledRejection']) process.on(event, crash);
process.on('message', (message) => {
  dispatch(handlers, /** @type {import('./primary/messages.js').ToWorker} */ (message));
});

const handlers = {
  /** @param {import('./primary/messages.js').Start} message */
  start: (message) => void start(message).catch(fail),

  /** @param {import('./primary/messages.js').Sample} message */
  sample({ id }) {
    const snapshot = takeSnapshot();
    if (snapshot) tell({ type: 'snapshot', id, snapshot });
  },

  /** @param {import('./primary/messages.js').Publish} message */
  publish: (message) => void publish(message).catch(crash),

  /** @param {import('./primary/messages.js').Feed} message */
  feed: (message) => broker?.feed(message),

  /** @param {import('./primary/messages.js').Answer} message */
  answer: (message) => broker?.answer(message),

  /** @param {import('./primary/messages.js').Reset} message */
  reset: (message) => broker?.reset(message),

  /** @param {import('./primary/messages.js').Listed} message */
  listed: (message) => presence?.listed(message),

  /** @param {import('./primary/messages.js').Room} message */
  room: (message) => presence?.room(message),

  /** @param {import('./primary/messages.js').Revoke} message */
  revoke({ id, list }) {
    if (transport) for (const what of list) hub.revoke(what); // before, there are no streams
    tell({ type: 'revoked', id });
  },

  /** @param {import('./primary/messages.js').Count} message */
  count: (message) => void count(message).catch(crash),

  /** @param {import('./primary/messages.js').Handover} message */
  handover: (message) => void steps?.answer(message).then(tell),

  /** @param {import('./primary/messages.js').NewCertificates} message */
  certificates(message) {
    secure = message.secure;
    try {
      listener?.setSecureContext(secureOptions(secure));
    } catch (error) {
      note(messageOf(error)); // it ends, for example; and nothing that the primary has not checked is worth a crash
    }
  },

  gc: () => collectGarbage(),

  /** @param {import('./primary/messages.js').Drain} message */
  drain: ({ periodMs }) => void drain(periodMs).catch(fail),
};

/** @param {import('./primary/messages.js').Start} message */
async function start({ type, config, transport: name, takesOver, place, ...share }) {
  const { port, host, sampleIntervalMs, gcIntervalMs, maxQueueBytes } = config;
  secure = share.secure;
  broker = new RemoteBroker({ place, send: tell, maxQueueBytes, answerMs: ANSWER_MS });
  if (config.subscriptions) presence = new RemotePresence({ send: tell, answerMs: ANSWER_MS });
  const own = ownPolicy(config);
  inner = innerServer((request, response) => {
    if (hub.owns(request.url ?? '/')) hub.handler(request, response);
    else void serve(made, own, request, response).catch(crash);
  }, config);
  inner.on('upgrade', (request, socket, head) =>
    hub.upgrade(
      request,
      socket,
      head,
      () => void serveUpgrade(made, own, request, socket, head).catch(crash),
    ),
  );
  const made = await createTransport(name, { ...config, ...share, policy: withHub(own), server: inner });
  if (secure) made.setSecureContext(secureOptions(secure)); // before listening sockets of others come
  listener = made;
  hub = new Hub({ ...hubOptions(config), hold: made, broker, onError: crash, onNote: note });
  if (presence) hub.attend(presence);
  await hub.start();
  transport = made; // publications reach the first stream, even before `ready` is sent
  const ownListen = () => listen(made, port, host);
  steps = new Steps({ handover: made.handover, hub, flush: () => presence?.flush(), listen: ownListen });
  const bound = takesOver ? port : await ownListen();
  sampler = new Sampler(sampleIntervalMs);
  if (globalThis.gc) setInterval(globalThis.gc, gcIntervalMs);
  tell({ type: 'ready', port: bound, shards: share.shards });
}

/** @param {import('./transport/index.js').Transport} made @param {number} port @param {string} host @returns {Promise<number>} the port */
function listen(made, port, host) {
  const options = secure ? { tls: secureOptions(secure) } : {};
  return made.listen(port, host, options).catch((error) => {
    throw codeOf(error) ? listenError(error, 'port', port, host) : error;
  });
}

/** @param {NonNullable<typeof secure>} secure @returns {import('./transport/tls.js').TlsOptions} */
function secureOptions({ ticketKeys, ...options }) {
  return { ...options, ticketKeys: Buffer.from(ticketKeys, 'base64') };
}

/** @param {import('./lib/config.js').Config} config */
function ownPolicy({ anonymous, acceptLoad, pingIntervalMs, idlePings }) {
  return withConsent(serverPolicy({ isAnonymous: anonymous, page: PAGE }), {
    consent: acceptLoad,
    pingIntervalMs,
    idlePings,
  });
}

/**
 * @param {ReturnType<typeof ownPolicy>} own for what is not the hub's
 * @returns {import('./transport/policy.js').Policy}
 */
function withHub(own) {
  return {
    headers: [...new Set([...own.headers, ...Hub.headers])],
    address: true,
    decide: (head, id) =>
      hub.owns(head.target) ? (refusalOf(head) ?? hub.decide(head, id)) : own.decide(head),
  };
}

/** @param {import('./primary/messages.js').Publish} message */
async function publish({ id, channel, message }) {
  try {
    const listeners = transport ? await transport.publish(channel, message) : 0;
    tell({ type: 'published', id, listeners });
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error;
    const outcome = error.code === 'BUSY' ? { busy: true } : { problem: error.message };
    tell({ type: 'published', id, ...outcome });
  }
}

/** @param {import('./primary/messages.js').Count} message */
async function count({ id, most }) {
  const top = transport ? selectorsIn(await transport.countChannels(most), most) : NOTHING;
  tell({ type: 'counted', id, top });
}

/** @param {number} periodMs */
async function drain(periodMs) {
  const limits = { idleMs: Math.min(periodMs, RETIRE_IDLE_MS), mostMs: periodMs };
  // A shard encrypts and decrypts for requests over TLS that were passed on, so it ends after them.
  const isAwaited = secure !== null || steps?.hasReleased;
  const closed = transport?.close(periodMs);
  if (inner && isAwaited) await retire(inner, limits);
  if (secure) inner?.closeAllConnections();
  await closed;
  presence?.flush();
  const snapshot = takeSnapshot();
  process.send?.({ type: 'drained', snapshot }, () => process.exit(0));
}

/** @returns {import('./primary/messages.js').Snapshot | null} null until it listens */
function takeSnapshot() {
  return (
    transport && sampler && { ...sampler.take(), ...transport.counters({ reset: true }), ...hub.counters() }
  );
}

/** Collects garbage now, with or without --expose-gc. */
function collectGarbage() {
  setFlagsFromString('--expose-gc');
  /** @type {() => void} */ (globalThis.gc ?? runInNewContext('gc'))();
}

/** @param {unknown} error that ends this worker */
function fail(error) {
  process.send?.({ type: 'failed', code: codeOf(error), message: messageOf(error) }, () => process.exit(1));
}

/**
 * A bug in JS, or what can't be gone on after. The shards are threads and still well, so the primary moves their streams to another
 * worker; until then, messages are answered as far as they can be. A worker without shards has nothing that could be saved.
 * @param {unknown} error
 */
function crash(error) {
  note(error instanceof Error ? (error.stack ?? error.message) : String(error));
  if (!transport?.handover) return fail(error);
  if (!hasCrashed) tell({ type: 'crashed', message: messageOf(error) });
  hasCrashed = true;
}

/** @param {string} line for the log: the primary reads what its workers write */
function note(line) {
  process.stderr.write(`${line}\n`);
}

/** @param {import('./primary/messages.js').ToPrimary} message */
function tell(message) {
  process.send?.(message);
}

tell({ type: 'hello' });
