/*
 * Why a server may not take over from the running one. Pure.
 */
import { formatCount, formatNoun } from '../../lib/format.js';
import { PROTOCOL } from './protocol.js';

/** Beyond this, a number of workers or shards is a mistake. */
const MOST_SHARDS = 4096;

/** @typedef {import('./protocol.js').TakeOver} TakeOver */

/**
 * @param {TakeOver} request
 * @param {{ transport: string, port: number, host: string, publications: string, isBusy: boolean, state: string, streams: number, tls: boolean }} own
 * @returns {string} why it is refused; '' if it is not
 */
export function refusalOf(
  { protocol, version, transport, port, host, publications, shards, room = null, tls = false },
  own,
) {
  if (protocol !== PROTOCOL)
    return `server ${version} speaks takeover protocol ${protocol}, and the running server ${PROTOCOL}: restart it instead`;
  for (const name of [own.transport, transport])
    if (name !== 'hold') return `the ${name} transport can't move streams: restart the server instead`;
  if (own.state !== 'running') return `the running server is ${own.state}`;
  if (own.isBusy) return 'another handover is in progress: try again later';
  if ((port !== 0 && port !== own.port) || host !== own.host)
    return `the running server listens on ${where(own)}, not on ${where({ port: port || own.port, host })}: use the same --port and --host`;
  if (tls !== own.tls) return tlsProblem(own);
  if (publications !== own.publications)
    return `the running server keeps publications in ${own.publications}, not in ${publications}: use the same --store and --nats`;
  if (!Array.isArray(shards) || shards.length === 0) return 'the new server has no workers';
  const areCounts = shards.every((count) => Number.isInteger(count) && count >= 1 && count <= MOST_SHARDS);
  if (!areCounts || shards.length > MOST_SHARDS)
    return `the new server must have 1 to ${MOST_SHARDS} workers, with 1 to ${MOST_SHARDS} shards each`;
  if (room !== null && room < own.streams)
    return `the new server has room for ${formatNoun(room, 'stream')}, but there are ${formatCount(own.streams)}: raise 'ulimit -n', use more --workers, or use --force to lose the others`;
  return '';
}

/**
 * The port goes over with its streams, and can't speak both.
 * @param {{ port: number, host: string, tls: boolean }} running
 * @returns {string} why a server that differs can't take over
 */
export function tlsProblem({ tls, ...address }) {
  return tls
    ? `the running server speaks TLS on ${where(address)}: use --tls-cert and --tls-key, or restart the server instead`
    : `the running server speaks no TLS on ${where(address)}: take over without --tls-cert, or restart the server instead`;
}

/** @param {{ port: number, host: string }} address */
function where({ port, host }) {
  return host ? `${host}:${port}` : `port ${port}`;
}
