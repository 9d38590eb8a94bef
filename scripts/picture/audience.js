/*
 * Some topics for the picture: subscribers of the hub, and publications about them.
 */
import { setTimeout as after } from 'node:timers/promises';

const HUB = '/.well-known/mercure';
const TOPICS = [
  'scores',
  'news',
  'rooms/lobby',
  'users/7',
  'prices/gold',
  'rooms/chess',
  'rooms/music',
  'users/12',
];
/** The topic number n has a share of 1 / (n + 1). */
const SUBSCRIBERS = 60;
const PAUSE_MS = 25;

/** @param {number} port @param {number} adminPort @param {AbortSignal} signal ends it */
export function fillTopics(port, adminPort, signal) {
  TOPICS.forEach((topic, rank) => {
    for (let i = 0; i < SUBSCRIBERS / (rank + 1); i++) void listen(port, topic, signal);
  });
  void publish(adminPort, signal);
}

/** @param {number} port @param {string} topic @param {AbortSignal} signal */
async function listen(port, topic, signal) {
  const url = `http://127.0.0.1:${port}${HUB}?topic=${encodeURIComponent(topic)}`;
  try {
    const { body } = await fetch(url, { signal });
    for await (const _ of body ?? []); // only so that the server is rid of it
  } catch {
    // the picture is finished
  }
}

/** @param {number} adminPort @param {AbortSignal} signal */
async function publish(adminPort, signal) {
  const url = `http://127.0.0.1:${adminPort}${HUB}`;
  for (let i = 1; !signal.aborted; i++) {
    const topic = TOPICS.find((_, rank) => i % 2 ** (rank + 1) === 2 ** rank) ?? TOPICS[0];
    const body = new URLSearchParams({ topic, data: String(i) });
    await fetch(url, { method: 'POST', body }).then(
      (response) => response.text(),
      () => {}, // the server is ending
    );
    await after(PAUSE_MS);
  }
}
