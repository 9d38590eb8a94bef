/*
 * The limits of the network: queues, ports, the firewall's connection table, buffer memory.
 */
import { formatCount } from '../lib/format.js';
import { atLeast, finding, numbersOf, SYSCTL_FILE } from './finding.js';

/** Ports for clients that avoid those of most services, and all unprivileged ports. */
const ROOMY = [10_240, 65_535];
const WIDEST = [1024, 65_535];
/** If more of the range is in use, the kernel searches long for a free port. */
const RANGE_SHARE = 0.8;
/** Buffer pages that an idle socket keeps (measured: 4,213 pages for 30,009 sockets). */
const IDLE_PAGES = 0.15;
/** Room for other connections of the machine. */
const SPARE_ROWS = 4096;
/** Rows per bucket of the connection table up to which lookups are fast. */
const ROWS_A_BUCKET = 4;
const SOCKET_FLOOR_BYTES = 4096;

/** @typedef {import('./kernel.js').Machine} Machine */
/** @typedef {import('./needs.js').Needs} Needs */
/** @typedef {import('./finding.js').Row} Row */

/** @type {Row[]} */
export const NETWORK_ROWS = [
  (machine, { waiting }) =>
    atLeast(
      machine,
      'net.core.somaxconn',
      waiting,
      'connections waiting to be accepted; more are dropped and retried after 1 s',
    ),
  (machine, { handshakes }) =>
    atLeast(machine, 'net.ipv4.tcp_max_syn_backlog', handshakes, 'handshakes in progress at the same time'),
  portRange,
  reservedPorts,
  conntrackRows,
  conntrackBuckets,
  socketMemory,
  (machine) => socketFloor(machine, 'net.ipv4.tcp_rmem', 'receive'),
  (machine) => socketFloor(machine, 'net.ipv4.tcp_wmem', 'send'),
];

/** @param {number[]} range @param {[number, number][]} reserved @returns {number} ports in it that are not reserved */
function sizeOf([low, high], reserved) {
  const taken = reserved.map(([from, to]) => Math.max(0, Math.min(to, high) - Math.max(from, low) + 1));
  return high - low + 1 - taken.reduce((sum, count) => sum + count, 0);
}

/** '8888,9000-9010' @param {Machine} machine @returns {[number, number][]} */
function reservedOf({ sysctls }) {
  const parts = (sysctls['net.ipv4.ip_local_reserved_ports'] ?? '').split(',').filter(Boolean);
  return parts.map((part) => {
    const [from, to = from] = part.split('-').map(Number);
    return [from, to];
  });
}

/**
 * The port range of the clients: as it is if it is large enough, or widened.
 * @param {Machine} machine @param {Needs} needs
 */
function rangesOf(machine, { portsEach }) {
  const reserved = reservedOf(machine);
  const now = numbersOf(machine, 'net.ipv4.ip_local_port_range') ?? WIDEST;
  const free = sizeOf(now, reserved);
  const isMet = portsEach <= free * RANGE_SHARE;
  const [low, high] = portsEach <= sizeOf(ROOMY, reserved) * RANGE_SHARE ? ROOMY : WIDEST;
  const wide = [Math.min(now[0], low), Math.max(now[1], high)];
  return { now, free, isMet, wide, wideFree: sizeOf(wide, reserved) };
}

/** @type {Row} */
function portRange(machine, needs) {
  const name = 'net.ipv4.ip_local_port_range';
  if (!needs.wish.isFleetHere || machine.sysctls[name] === undefined) return null;
  const { now, free, isMet, wide, wideFree } = rangesOf(machine, needs);
  const { portsEach, wish } = needs;
  const addresses = Math.ceil(wish.streams / (wideFree * RANGE_SHARE));
  return finding({
    name,
    now: now.join('-'),
    needed: isMet ? now.join('-') : wide.join('-'),
    why: `clients here need ${formatCount(portsEach)} ports per address, and there are ${formatCount(free)}`,
    isMet,
    forbids: portsEach > free,
    fix:
      portsEach > wideFree
        ? { file: '', line: `give the clients ${addresses} addresses to connect from (--sources)` }
        : { file: SYSCTL_FILE, line: `${name} = ${wide.join(' ')}` },
  });
}

/** @type {Row} */
function reservedPorts(machine, needs) {
  const name = 'net.ipv4.ip_local_reserved_ports';
  const now = machine.sysctls[name];
  if (!needs.wish.isFleetHere || now === undefined) return null;
  const range = rangesOf(machine, needs);
  const [low, high] = range.isMet ? range.now : range.wide;
  const reserved = reservedOf(machine);
  const ours = (needs.wish.ports ?? []).filter((port) => port >= low && port <= high);
  const missing = ours.filter((port) => !reserved.some(([from, to]) => port >= from && port <= to));
  const all = [now, ...missing].filter(Boolean).join(',');
  return finding({
    name,
    now: now || 'none',
    needed: all || 'none',
    why: 'prevents clients here from taking a port that the server or its fleet listens on',
    isMet: missing.length === 0,
    fix: { file: SYSCTL_FILE, line: `${name} = ${all}` },
  });
}

/** Rows in the connection table during the run. @param {Machine} machine @param {Needs} needs */
function tracked(machine, { wish }) {
  const count = numbersOf(machine, 'net.netfilter.nf_conntrack_count')?.[0] ?? 0;
  return { isTracking: count > 0, rows: count + wish.streams + SPARE_ROWS };
}

/** Many machines load it although no firewall rule needs it; then it tracks nothing. @type {Row} */
function conntrackRows(machine, needs) {
  const { isTracking, rows } = tracked(machine, needs);
  const why = isTracking
    ? 'the firewall tracks each connection in a row; when all are used it drops packets'
    : 'rows of the firewall, one per connection; it tracks none now, so this can wait';
  return atLeast(machine, 'net.netfilter.nf_conntrack_max', rows, why, { forbids: isTracking });
}

/** @type {Row} */
function conntrackBuckets(machine, needs) {
  const { rows } = tracked(machine, needs);
  const why = `the hash table of those rows: with more than ${ROWS_A_BUCKET} per bucket, each packet searches a list`;
  return atLeast(machine, 'net.netfilter.nf_conntrack_buckets', rows / ROWS_A_BUCKET, why);
}

/**
 * Every socket with bytes to send or to read uses a page. The kernel saves memory from the second value on and refuses
 * at the third; by default the three are in the ratio 3 : 4 : 6 (tcp(7)).
 * @type {Row}
 */
function socketMemory(machine, { wish, ends }) {
  const sockets = wish.streams * ends;
  const high = numbersOf(machine, 'net.ipv4.tcp_mem')?.[2] ?? 0;
  const pages = Math.min(sockets, machine.memory.totalBytes / machine.pageBytes / 2);
  const whose = ends === 2 ? ' at both ends' : '';
  const why = `pages of all buffers: a message to all uses one per stream${whose}, idle streams ${IDLE_PAGES}`;
  return atLeast(machine, 'net.ipv4.tcp_mem', pages, why, {
    label: 'net.ipv4.tcp_mem (pages, last)',
    at: 2,
    raised: [pages / 2, (pages * 2) / 3, pages],
    forbids: sockets * IDLE_PAGES > high,
  });
}

/** @param {Machine} machine @param {string} name @param {string} what */
function socketFloor(machine, name, what) {
  const why = `${what} buffer that a socket keeps even if all buffers together use too much`;
  return atLeast(machine, name, SOCKET_FLOOR_BYTES, why, { label: `${name} (bytes, first)` });
}
