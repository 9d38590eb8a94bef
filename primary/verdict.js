/*
 * The lines that the server prints at its start: warnings, the plan, and the limits of the machine.
 */
import { existsSync } from 'node:fs';
import { adminCautions, tokenCautions } from '../lib/cautions.js';
import { OPTIONS, uselessOptions } from '../lib/config.js';
import { HoldfastError } from '../lib/errors.js';
import { formatNoun } from '../lib/format.js';
import { variableWarnings } from '../lib/variables.js';
import { findLimits, memoryRefusal, mostStreams, streamsHere, verdictLine } from '../limits/index.js';
import { readMachine } from '../limits/kernel.js';

/** The limits are judged for this many streams opened per second. */
const USUAL_OPEN_RATE = 1000;

/** The installed package has no scripts. */
const HAS_TUNE = existsSync(new URL('../scripts/tune.js', import.meta.url));

/** @typedef {import('../limits/plan.js').Plan} Plan */
/** @typedef {import('../transport/index.js').Choice} Choice */

/** @param {import('../lib/config.js').Config} config @param {NodeJS.ProcessEnv} env @returns {string[]} what is probably not meant */
export function warningsOf(config, env) {
  return [
    ...variableWarnings(OPTIONS, env),
    ...uselessOptions(config, globalThis.gc !== undefined),
    ...tokenCautions(config),
    ...adminCautions(config),
  ];
}

/**
 * What was started. The last two lines are visible even in the smallest dashboard.
 * @param {object} server
 * @param {import('../lib/config.js').Config} server.config @param {Plan} server.plan @param {Choice} server.transport
 * @param {number} server.port @param {number} server.adminPort 0 if it is off @param {string} server.paths of the admin port
 * @param {string} server.csvPath '' for none
 * @returns {string[]}
 */
export function startLines({ config, plan, transport, port, adminPort, paths, csvPath }) {
  const admin = adminPort ? urlOf(config.adminHost, adminPort) : '';
  return [
    csvPath && `CSV in ${csvPath}`,
    admin && `admin on ${admin}: ${paths}`,
    transport.note,
    openLine(config),
    limitsLine(config, plan, transport, port),
    planLine(plan, transport),
    `listening on ${streamsUrl(config, port)}${admin && `; dashboard on ${admin}`}`,
  ].filter((line) => line !== '');
}

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
    isTls: config.tlsCerts.length > 0,
    openRate: USUAL_OPEN_RATE,
    isFleetHere: false,
    ports: [port],
  };
}

/** @param {Plan} plan @returns {number} streams */
function roomOf({ workers, shards, capacity }) {
  return workers * shards * capacity;
}

/**
 * Before anything is forked: only the native core speaks TLS.
 * @param {import('../lib/config.js').Config} config
 * @param {Choice} transport
 * @throws {HoldfastError} NOT_NATIVE
 */
export function checkTls({ tlsCerts }, { name, note }) {
  if (tlsCerts.length === 0 || name === 'hold') return;
  throw new HoldfastError(
    'NOT_NATIVE',
    `--tls-cert needs the hold transport${note ? `; ${note}` : `, not ${name}`}: put a proxy in front that speaks TLS, or use --transport hold`,
  );
}

/** @param {import('../lib/config.js').Config} config @param {number} port @returns {string} with the versions of TLS, if it speaks it */
function streamsUrl({ host, tlsCerts, tlsMinVersion }, port) {
  if (tlsCerts.length === 0) return urlOf(host, port);
  const versions = tlsMinVersion === '1.2' ? 'TLS 1.2 and 1.3' : 'TLS 1.3';
  return `${urlOf(host, port, 'https')} (${versions})`;
}

/**
 * @param {string} host '' for all @param {number} port @param {'http' | 'https'} [scheme]
 * @returns {string} where a browser of this machine finds it
 */
export function urlOf(host, port, scheme = 'http') {
  const isAll = host === '' || host === '0.0.0.0' || host === '::';
  return `${scheme}://${isAll ? 'localhost' : host.includes(':') ? `[${host}]` : host}:${port}`;
}
