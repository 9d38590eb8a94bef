/*
 * Other processes of the same user can listen on the port of the shards, because they share it (SO_REUSEPORT), at a more
 * specific address: the kernel then gives them all connections to that address. Nothing can prevent that, so the server logs it.
 */
import { open } from 'node:fs/promises';

const CHECK_EVERY_MS = 10_000;
const READ_BYTES = 16_384;
/** In /proc/net/tcp and tcp6, listening sockets come first. */
const LISTENING = '0A';
const WILDCARD = /^0+$/;

/** @typedef {{ address: string, port: number }} Listener the address as the kernel writes it, in hex */

/**
 * Notes each address of the port at which another process listens, if the server listens on all of them.
 * @param {number} port @param {string} host as in the options
 * @param {(line: string) => void} note
 */
export async function watchNeighbours(port, host, note) {
  if (!['', '::', '0.0.0.0'].includes(host)) return;
  const known = new Set();
  const look = async () => {
    // A server on 0.0.0.0 has no IPv6 connections that others could get.
    const tcp6 = host === '0.0.0.0' ? '' : await readListeners('tcp6');
    for (const address of neighboursIn(tcp6, await readListeners('tcp'), port)) {
      if (!known.has(address)) note(neighbourLine(address, port));
      known.add(address);
    }
  };
  setInterval(look, CHECK_EVERY_MS).unref();
  await look();
}

/** @param {string} address @param {number} port */
function neighbourLine(address, port) {
  const where = address.includes(':') ? `[${address}]` : address;
  return `another process listens on ${where}:${port} too, and gets all connections to that address`;
}

/**
 * @param {string} tcp6 rows of /proc/net/tcp6 @param {string} tcp rows of /proc/net/tcp
 * @param {number} port that this server listens on, at all addresses
 * @returns {string[]} other addresses of that port
 */
export function neighboursIn(tcp6, tcp, port) {
  const [six, four] = [tcp6, tcp].map((rows) => listenersIn(rows).filter((one) => one.port === port));
  const hasSix = six.some(({ address }) => WILDCARD.test(address));
  const others = [
    ...six.filter(({ address }) => !WILDCARD.test(address)),
    ...four.filter(({ address }) => hasSix || !WILDCARD.test(address)),
  ];
  return [...new Set(others.map(({ address }) => addressOf(address)))];
}

/** @param {string} rows @returns {Listener[]} */
function listenersIn(rows) {
  return rows.split('\n').flatMap((row) => {
    const [, local = '', , state] = row.trim().split(/\s+/);
    const [address, port] = local.split(':');
    return state === LISTENING ? [{ address, port: Number.parseInt(port, 16) }] : [];
  });
}

/** @param {string} hex of 32-bit words in the byte order of this machine's CPU (little-endian) @returns {string} */
function addressOf(hex) {
  const bytes = Buffer.from(hex, 'hex').swap32();
  if (bytes.length === 4) return bytes.join('.');
  const groups = Array.from({ length: 8 }, (_, i) => bytes.readUInt16BE(2 * i).toString(16));
  return new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1);
}

/**
 * Reads until the first row of a socket that does not listen: there may be a million of them.
 * @param {'tcp' | 'tcp6'} table @returns {Promise<string>} rows; '' without /proc
 */
async function readListeners(table) {
  const file = await open(`/proc/net/${table}`).catch(() => null);
  if (!file) return '';
  let text = '';
  try {
    for (;;) {
      const { bytesRead, buffer } = await file.read(Buffer.alloc(READ_BYTES), 0, READ_BYTES, null);
      text += buffer.toString('latin1', 0, bytesRead);
      if (bytesRead === 0 || hasOthers(text)) return text;
    }
  } catch {
    return text;
  } finally {
    await file.close();
  }
}

/** @param {string} rows the first line is a heading @returns {boolean} whether one of them does not listen */
function hasOthers(rows) {
  const states = rows
    .split('\n')
    .slice(1, -1)
    .map((row) => row.trim().split(/\s+/)[3]);
  return states.some((state) => state !== LISTENING);
}
