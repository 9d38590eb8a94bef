/*
 * The lines about the plan and the limits of the machine that the server prints at its start.
 */
import { existsSync } from 'node:fs';
import { HoldfastError } from '../lib/errors.js';
import { formatNoun } from '../lib/format.js';
import { findLimits, memoryRefusal, mostStreams, streamsHere, verdictLine } from '../limits/index.js';
import { readMachine } from '../limits/kernel.js';

/** The limits are judged for this many streams opened per second. */
const USUAL_OPEN_RATE = 1000;

/** The installed package has no scripts. */
const HAS_TUNE = existsSync(new URL('../scripts/tune.js', import.meta.url));

/** @typedef {import('../limits/plan.js').Plan} Plan */
/** @typedef {import('../transport/index.js').Choice} Choice */

/** @param {Plan} plan @param {Choice} transport @returns {string} one line */
export function planLine(plan, transport) {
  const shards = plan.shards > 1 ? ` with ${plan.shards} shards each` : '';
  return `${formatNoun(plan.workers, 'worker')}${shards}, ${transport.name} transport, room for ${formatNoun(roomOf(plan), 'stream')}`;
}

/**
 * Whether the limits of the machine allow the requested number of streams. scripts/tune.js has the full table.
 * @param {import('../lib/config.js').Config} config
 * @param {Plan} plan @param {Choice} transport
 * @param {number} port that the server listens on
 * @returns {string} one line
 */
export function limitsLine(config, plan, transport, port) {
  const machine = readMachine();
  const wish = wishOf(config, transport, port);
  const possible = () => Math.min(roomOf(plan), streamsHere(machine, wish), mostStreams(machine, wish));
  const streams = config.streams || possible();
  return verdictLine(findLimits(machine, { ...wish, streams }), streams, { hasTune: HAS_TUNE });
}

/**
 * Who may use the hub.
 * @param {import('../lib/config.js').Config} config
 * @returns {string} one line
 */
export function openLine({ anonymous, jwtSecret, jwtPublisherKey, jwtSubscriberKey, jwksUrl }) {
  const canPublish = jwtSecret || jwtPublisherKey || jwksUrl;
  const canRead = jwtSecret || jwtSubscriberKey || jwksUrl;
  const readers = anonymous
    ? 'everybody'
    : canRead
      ? 'this machine, and tokens'
      : 'this machine only (--anonymous is everybody)';
  const publishers = canPublish
    ? 'tokens, and the admin port'
    : 'only the admin port, because there is no key (--jwt-secret)';
  return `open: GET / to everybody; topics and channels to ${readers}; publishing to ${publishers}`;
}

/**
 * Before anything is forked: refuses what memory forbids, unless --force says otherwise.
 * @param {import('../lib/config.js').Config} config
 * @param {Choice} transport
 * @throws {HoldfastError} NO_MEMORY
 */
export function checkMemory(config, transport) {
  const refusal = config.force ? '' : memoryRefusal(readMachine(), wishOf(config, transport, config.port));
  if (refusal) throw new HoldfastError('NO_MEMORY', refusal);
}

/**
 * @param {import('../lib/config.js').Config} config @param {Choice} transport @param {number} port
 * @returns {import('../limits/index.js').Wish}
 */
function wishOf(config, transport, port) {
  return {
    ...config,
    transport: transport.name,
    mostShards: transport.mostShards,
    openRate: USUAL_OPEN_RATE,
    isFleetHere: false,
    ports: [port],
  };
}

/** @param {Plan} plan @returns {number} streams */
function roomOf({ workers, shards, capacity }) {
  return workers * shards * capacity;
}
