/*
 * URL patterns: many of them that match nothing, and some that are made to take forever.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { signerOf } from '../../../fleet/drone/topics/tokens.js';
import { Client } from '../client.js';
import { busyUs, idleShare } from '../usage.js';
import { publish, startPublisher, stopAll } from './publishing.js';
import { sizesOf } from './sizes.js';
import { HUB_PATH, headOf, SECRET, startHub } from './subjects.js';
import { TickWatch } from './ticks.js';

const PATTERNS = 1000;
const PER_SECOND = 100;
const BATCH = 100;
const ELSEWHERE = 'https://example.com/elsewhere/{n}';
/** With backtracking, each takes longer than the universe will exist. */
const CATASTROPHES = ['((?:a+)+)b', '((?:a|aa)+)b', '((?:a*)*)b', '((?:a|a)*)b', '(.*.*.*.*.*.*.*.*b)'];
const LETTERS = 2000;
const TIMES = 20;

/** @typedef {import('./subjects.js').Round} Round */

/** CPU of a publication that matches none of many patterns, and of the same one while nobody is there. @param {Round} round */
export async function measureNoMatch(round) {
  const { lab, plan, name, record } = round;
  lab.status = () => `[${name}] patterns that don't match`;
  const { floodMs, settleMs, idleMs } = sizesOf(plan);
  const server = await startHub(round, { part: 'patterns' });
  const how = { topic: ELSEWHERE, topics: PATTERNS, batch: BATCH, connections: 1, isNumbered: false };
  const publisher = await startPublisher(round, server, how);
  const idle = await idleShare(lab, server, idleMs);
  const costUs = async () => {
    let sent = 0;
    const us = await busyUs(server, idle, async () => {
      ({ sent } = await publish(publisher, { ms: floodMs, perSecond: PER_SECOND }));
    });
    return us / sent;
  };
  await costUs();
  record('hub', { nobodyUs: await costUs() });
  const file = join(lab.folder, 'heads-patterns');
  writeFileSync(file, patternHeads().join(''));
  const client = new Client(lab, server.port, '/', file);
  await client.open(plan.streams);
  await lab.sleep(settleMs);
  await costUs();
  record('hub', { noMatchUs: await costUs() });
  await client.stop();
  await stopAll(publisher, server);
}

/** @returns {string[]} */
function patternHeads() {
  return Array.from({ length: PATTERNS }, (_, i) =>
    headOf(targetOf(`https://example.com/rooms/${i}/:user/messages/*`)),
  );
}

/** @param {string} pattern */
function targetOf(pattern) {
  return `${HUB_PATH}?match_urlpattern=${encodeURIComponent(pattern)}`;
}

/** @param {Round} round */
export async function measureCatastrophes(round) {
  const { lab, name, record } = round;
  lab.status = () => `[${name}] catastrophic regular expressions`;
  const server = await startHub(round, { part: 'catastrophes' });
  const url = `http://127.0.0.1:${server.port}`;
  const token = signerOf({ secret: SECRET, dialect: '0.x', ttlS: 600 })('lab', 'publish', ['*']);
  const ending = new AbortController();
  const signal = AbortSignal.any([ending.signal, lab.signal]);
  const watch = await new TickWatch(lab, server).start();
  const statuses = [];
  for (const expression of CATASTROPHES) {
    const answer = await fetch(url + targetOf(`https://example.com/${expression}`), { signal });
    statuses.push(answer.status);
  }
  for (let i = 0; i < TIMES; i++) {
    await fetch(url + HUB_PATH, {
      method: 'POST',
      headers: { Authorization: `Bearer ${token}` },
      body: new URLSearchParams({ topic: `https://example.com/${'a'.repeat(LETTERS + i)}`, data: 'x' }),
      signal,
    });
  }
  const { maxMs } = await watch.stop();
  ending.abort();
  const isRefused = statuses.filter((status) => status === 400).length;
  record('hub', { refusedPatterns: isRefused, patternTickMs: maxMs });
  await server.stop();
}
