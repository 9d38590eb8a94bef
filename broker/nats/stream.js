/*
 * The stream of a hub in JetStream: created on first use, or checked. Its sequences are those of the hub.
 *
 * The epoch follows from when the stream was created and from the key in its description, so all nodes agree on both, and a
 * stream that is created again starts a new epoch. A stream that somebody else created has no key there; then it follows from the rest.
 */
import { createHash, randomBytes } from 'node:crypto';
import { DiscardPolicy, JetStreamApiError, RetentionPolicy, StorageType } from '@nats-io/jetstream';
import { HoldfastError, messageOf } from '../../lib/errors.js';
import { subjectsOf } from './messages.js';

/** The same publication may be published again for this long, without being stored again. */
const DUPLICATES_MS = 120_000;
const NS = 1_000_000;
const KEY_BYTES = 16;
const DESCRIPTION = 'Publications of Holdfast; cursor key';
const NOT_FOUND = 404;
/**
 * While servers of a cluster start: no room for all replicas yet, not available yet, no leader, not the leader. And the name is taken, by
 * a stream that another node has just created and that has no leader yet.
 */
const PASSING = [10_005, 10_008, 10_009, 10_023, 10_058];

/** @typedef {import('@nats-io/jetstream').JetStreamManager} Manager */
/** @typedef {import('@nats-io/jetstream').StreamInfo} Info */
/** @typedef {import('@nats-io/jetstream').StreamConfig} Config */

/**
 * What the stream should be.
 * @typedef {object} Wanted
 * @property {string} name
 * @property {number} replicas
 * @property {import('../index.js').Retention} retention
 */

/**
 * @param {Manager} manager @param {Wanted} wanted
 * @returns {Promise<Info>} of the stream, which is created if there is none
 * @throws {HoldfastError} NATS: it can't be created, or it is not of use. Other errors pass
 */
export async function openStream(manager, wanted) {
  const info = (await infoOf(manager, wanted.name)) ?? (await create(manager, wanted));
  const problem = problemOf(info.config, wanted);
  if (problem) throw new HoldfastError('NATS', `the stream ${wanted.name} in NATS ${problem}`);
  return info;
}

/** @param {Manager} manager @param {string} name @returns {Promise<Info | null>} null if there is none */
export async function infoOf(manager, name) {
  try {
    return await manager.streams.info(name);
  } catch (error) {
    if (error instanceof JetStreamApiError && error.status === NOT_FOUND) return null;
    throw error;
  }
}

/** @param {Manager} manager @param {Wanted} wanted @returns {Promise<Info>} */
async function create(manager, wanted) {
  try {
    return await manager.streams.add(configOf(wanted));
  } catch (error) {
    const other = await infoOf(manager, wanted.name); // another node may have been faster
    if (other) return other;
    if (!(error instanceof JetStreamApiError) || PASSING.includes(error.code)) throw error;
    const line = `there is no stream ${wanted.name} in NATS, and it can't be created: ${messageOf(error)}`;
    throw new HoldfastError(
      'NATS',
      `${line}; create it with the subjects ${subjectsOf(wanted.name).join(' and ')}`,
    );
  }
}

/** @param {Wanted} wanted @returns {Pick<Config, 'name'> & Partial<Config>} */
function configOf({ name, replicas, retention: { historyCount, historyAgeMs, historyBytes } }) {
  return {
    name,
    description: descriptionWith(randomBytes(KEY_BYTES)),
    subjects: subjectsOf(name),
    storage: StorageType.File,
    retention: RetentionPolicy.Limits,
    discard: DiscardPolicy.Old,
    max_msgs: historyCount,
    max_age: historyAgeMs * NS,
    max_bytes: historyBytes,
    num_replicas: replicas,
    duplicate_window: Math.min(DUPLICATES_MS, historyAgeMs) * NS,
    allow_direct: true,
  };
}

/** @param {Config} config @param {Wanted} wanted @returns {string} what is wrong with it; '' if it can be used */
function problemOf(config, { name }) {
  const subjects = subjectsOf(name);
  if (!subjects.every((one) => config.subjects?.includes(one)))
    return `has the subjects ${config.subjects?.join(', ')}: ${subjects.join(' and ')} must be among them`;
  if (config.retention !== RetentionPolicy.Limits)
    return `has the retention '${config.retention}': it must be 'limits'`;
  if (config.discard !== DiscardPolicy.Old) return `discards '${config.discard}': it must be 'old'`;
  if (config.max_msgs_per_subject > 0)
    return `has max_msgs_per_subject, which leaves gaps in the history: it must be -1`;
  if (config.no_ack) return 'does not acknowledge (no_ack): nobody would know what is stored';
  return '';
}

/**
 * How an existing stream differs from what was asked for, without being wrong.
 * @param {Info} info @param {Wanted} wanted
 * @returns {string[]}
 */
export function differencesOf({ config }, { replicas, retention }) {
  const { historyCount, historyAgeMs, historyBytes } = retention;
  /** @type {[string, number, number][]} */
  const rows = [
    ['--nats-replicas', replicas, config.num_replicas],
    ['--history-count', historyCount, config.max_msgs],
    ['--history-age', historyAgeMs, config.max_age / NS],
    ['--history-bytes', historyBytes, config.max_bytes],
  ];
  return rows
    .filter(([, wanted, found]) => wanted !== found)
    .map(
      ([flag, wanted, found]) =>
        `${flag} is ${wanted}, but the stream has ${found > 0 ? found : 'no limit'}, and that counts`,
    );
}

/** @param {Info} info @returns {{ epoch: number, key: Uint8Array }} the same on all nodes, as long as the stream exists */
export function identityOf({ created, config: { name, description = '' } }) {
  const hash = createHash('sha256').update(`${name} ${created} ${description}`).digest();
  const written = description.startsWith(DESCRIPTION)
    ? Buffer.from(description.slice(DESCRIPTION.length), 'base64url')
    : Buffer.alloc(0);
  const key = written.length === KEY_BYTES ? written : hash.subarray(4, 4 + KEY_BYTES);
  return { epoch: hash.readUInt32LE() || 1, key: new Uint8Array(key) };
}

/** @param {Info} info @returns {number} ms for which NATS knows the id of a publication */
export function windowMsOf({ config }) {
  return config.duplicate_window / NS;
}

/** @param {Manager} manager @param {Info} info @param {number} seq @returns {Promise<boolean>} whether the stream has anything from there on */
export async function hasFrom(manager, { config }, seq) {
  const query = /** @type {any} */ ({ seq, next_by_subj: '>' }); // the types lack the second one
  return (await manager.streams.getMessage(config.name, query)) !== null;
}

/**
 * Starts a new epoch for all nodes: the stream has lost publications that were acknowledged, and gives their sequences to others.
 * @param {Manager} manager @param {Info} info before the loss was noticed
 * @returns {Promise<Info>}
 */
export async function renew(manager, { config }) {
  const info = await manager.streams.info(config.name);
  if (info.config.description !== config.description) return info; // another node has done it
  return manager.streams.update(config.name, { description: descriptionWith(randomBytes(KEY_BYTES)) });
}

/** @param {Uint8Array} key */
function descriptionWith(key) {
  return `${DESCRIPTION} ${Buffer.from(key).toString('base64url')}`;
}
