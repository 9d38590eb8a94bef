/*
 * How long it takes until everybody has everything, after a node or NATS was away.
 */
import { setTimeout as after } from 'node:timers/promises';
import { signerOf } from '../../../fleet/drone/topics/tokens.js';
import { HoldfastError } from '../../../lib/errors.js';
import { checkedDeliveries, publish, startCrowd, startPublisher, stopAll } from '../hub/publishing.js';
import { HUB_PATH, SECRET, TOPIC } from '../hub/subjects.js';

/** Publications per second meanwhile. */
const PER_SECOND = 1000;
/** Longer than a hub waits for NATS. */
const ATTEMPT_MS = 6000;
const MOST_MS = 60_000;
const POLL_MS = 5;

/** @typedef {import('../hub/publishing.js').Route} Route */
/** @typedef {import('../experiment.js').Round} Round */

/**
 * The node of the clients is stopped (SIGSTOP) while the other one publishes, and continues.
 * @param {Round} round @param {Route} route @param {number} ms how long
 * @returns {Promise<number>} ms from when it continues until its clients have everything
 */
export async function catchUpMs(round, { publishAt, clientsAt }, ms) {
  const crowd = await startCrowd(round, clientsAt);
  const publisher = await startPublisher(round, publishAt, {});
  const before = await publish(publisher, { ms: ms / 5, perSecond: PER_SECOND });
  await crowd.ask('untilDelivered', before.sent);
  const pids = clientsAt.pids();
  const signal = (/** @type {'SIGSTOP' | 'SIGCONT'} */ name) => {
    for (const pid of pids) process.kill(pid, name);
  };
  const resume = round.lab.clean.add(() => signal('SIGCONT'));
  signal('SIGSTOP');
  const meanwhile = await publish(publisher, { ms, perSecond: PER_SECOND });
  await resume();
  const total = before.sent + meanwhile.sent;
  const tookMs = await crowd.ask('untilDelivered', total);
  await checkedDeliveries(crowd, total);
  await stopAll(publisher, crowd);
  return tookMs;
}

/**
 * All of NATS is killed, and started again after a while. A publication is sent again and again, with the same id.
 * @param {Round} round @param {Route} route @param {import('./nats.js').Nats[]} nats @param {number} ms how long
 * @returns {Promise<number>} ms from when NATS is ready until a client of the other node has the publication
 */
export async function afterOutageMs(round, { publishAt, clientsAt }, nats, ms) {
  const reader = new AbortController();
  const answer = await fetch(`${hubOf(clientsAt)}?topic=${encodeURIComponent(TOPIC)}`, {
    signal: reader.signal,
  });
  const data = `outage ${Date.now()}`;
  const arrived = untilRead(answer, `data: ${data}\n`);
  await Promise.all(nats.map((server) => server.kill()));
  const over = new AbortController();
  const published = publishSurely(publishAt, data, over.signal);
  await round.lab.sleep(ms);
  await Promise.all(nats.map((server) => server.start()));
  const begunMs = performance.now();
  const timeout = after(MOST_MS, undefined, { signal: over.signal }).catch(() => {});
  const isThere = await Promise.race([Promise.all([published, arrived]).then(() => true), timeout]);
  const tookMs = performance.now() - begunMs;
  over.abort();
  reader.abort();
  if (!isThere)
    throw new HoldfastError('WRONG', `NATS is back, and ${MOST_MS / 1000} s later nothing is published`);
  return tookMs;
}

/** @param {import('../server.js').LabServer} server */
function hubOf({ port }) {
  return `http://127.0.0.1:${port}${HUB_PATH}`;
}

/** @param {Response} answer @param {string} text */
async function untilRead({ body }, text) {
  let read = '';
  const decoder = new TextDecoder();
  try {
    for await (const chunk of /** @type {AsyncIterable<Uint8Array>} */ (/** @type {unknown} */ (body))) {
      read += decoder.decode(chunk, { stream: true });
      if (read.includes(text)) return;
    }
  } catch {} // it was aborted
}

/** @param {import('../server.js').LabServer} server @param {string} data @param {AbortSignal} signal */
async function publishSurely(server, data, signal) {
  const token = signerOf({ secret: SECRET, dialect: '0.x', ttlS: 86_400 })('lab', 'publish', ['*']);
  const body = new URLSearchParams({ topic: TOPIC, data, id: `urn:${data}` });
  const headers = { Authorization: `Bearer ${token}` };
  while (!signal.aborted) {
    const attempt = AbortSignal.any([signal, AbortSignal.timeout(ATTEMPT_MS)]);
    const answer = await fetch(hubOf(server), { method: 'POST', body, headers, signal: attempt }).catch(
      () => null,
    );
    await answer?.text().catch(() => '');
    if (answer?.status === 200) return;
    await after(POLL_MS);
  }
}
