/*
 * What is measured: plain streams of the server on one channel, and streams that subscribe to one topic of its hub.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { signerOf } from '../../../fleet/drone/topics/tokens.js';
import { Client } from '../client.js';
import { startServer } from '../server.js';

export const SECRET = 'a secret that only this experiment uses';
export const HUB_PATH = '/.well-known/mercure';
export const TOPIC = 'https://example.com/all';
const CHANNEL = 'all';
const TTL_S = 86_400;
/** An interval so long that no ping is due during a measurement. */
const NEVER_MS = 3_600_000;
const USUAL = ['--refresh', '1000', '--anonymous'];
const USUAL_WORKERS = 2;

/** @typedef {import('../experiment.js').Round} Round */
/** @typedef {import('../server.js').LabServer} LabServer */
/** @typedef {'plain' | 'topic' | 'shared' | 'own' | 'ec'} Kind streams of this kind: see KINDS */

/** Whose streams are compared. @type {Record<Exclude<Kind, 'ec'>, string>} */
export const KINDS = {
  plain: 'streams on one channel, without the hub',
  topic: 'streams of the hub on one exact topic, without a token',
  shared: 'the same with a token that all share',
  own: 'the same with an HS256 token each: its own subject, the same grant, no id',
};

/**
 * @param {Round} round
 * @param {{ part: string, workers?: number, args?: string[], nodeFlags?: string[] }} how part: for the name of the CSV
 * @returns {Promise<LabServer>}
 */
export function startHub({ lab, name }, { part, workers = USUAL_WORKERS, args = [], nodeFlags = [] }) {
  const keys = args.some((arg) => arg.startsWith('--jwt')) ? [] : ['--jwt-secret', SECRET];
  return startServer(lab, {
    name: `${part}-${name}`,
    host: '0.0.0.0', // the client spreads its streams over many loopback addresses
    args: ['--workers', String(workers), ...USUAL, ...keys, '--ping-interval', String(NEVER_MS), ...args],
    nodeFlags,
  });
}

/**
 * A client whose streams are of one kind. The same tokens come again when its streams are opened again.
 * @param {Round} round @param {LabServer} server @param {Kind} kind
 * @param {{ secret?: string, streams?: number, first?: number }} [how] first: number of the first token, if each stream has one
 * @returns {Client}
 */
export function clientOf(
  { lab, plan },
  { port },
  kind,
  { secret = SECRET, streams = plan.streams, first = 0 } = {},
) {
  const file = join(lab.folder, `heads-${kind}-${first}`);
  writeFileSync(file, headsOf(kind, secret, streams, first).join(''));
  return new Client(lab, port, '/', file);
}

/** @param {Kind} kind @param {string} secret @param {number} streams @param {number} first @returns {string[]} */
function headsOf(kind, secret, streams, first) {
  if (kind === 'plain') return [headOf(`/?channel=${CHANNEL}`)];
  const target = `${HUB_PATH}?match=${encodeURIComponent(TOPIC)}`;
  if (kind === 'topic') return [headOf(target)];
  const create = signerOf({ secret, dialect: '0.x', ttlS: TTL_S });
  return Array.from({ length: kind === 'shared' ? 1 : streams }, (_, i) =>
    headOf(target, `Authorization: Bearer ${create(`user-${first + i}`, 'subscribe', [TOPIC])}\r\n`),
  );
}

/** @param {string} target @param {string} [lines] @returns {string} */
export function headOf(target, lines = '') {
  return `GET ${target} HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n${lines}\r\n`;
}

/**
 * Publishes once to all streams of a kind.
 * @param {LabServer} server @param {Kind} kind @param {string} message
 * @returns {Promise<number>} bytes that each stream reads
 */
export async function publishTo(server, kind, message) {
  if (kind === 'plain') {
    await server.publish(CHANNEL, message);
    return chunkBytes(`data: ${message}\n\n`);
  }
  const token = signerOf({ secret: SECRET, dialect: '0.x', ttlS: TTL_S })('lab', 'publish', ['*']);
  const answer = await fetch(`http://127.0.0.1:${server.port}${HUB_PATH}`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}` },
    body: new URLSearchParams({ topic: TOPIC, data: message }),
  });
  return chunkBytes(`id: ${await answer.text()}\ndata: ${message}\n\n`);
}

/** @param {string} text @returns {number} bytes of the chunk */
function chunkBytes(text) {
  return text.length.toString(16).length + text.length + '\r\n\r\n'.length;
}
