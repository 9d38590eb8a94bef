/*
 * The stats commands: those of memcached's figures that exist here, under the same names.
 */
import { DETAIL_USAGE, ERROR, RESET } from './answers.js';
import { SHARED, total } from './counters.js';
import * as layout from './layout.js';
import { VERSION } from './options.js';

/** @typedef {import('./requests.js').Requests} Requests */

/** In requests that take as long. */
const COST = 50;

/** @param {Requests} requests @param {number} counter of the stores @returns {number} */
const sum = ({ stores }, counter) => stores.reduce((all, store) => all + store.doubles[counter], 0);

/** @param {Requests} requests @returns {Record<string, string | number>} */
function general(requests) {
  const { shared, options, stores } = requests;
  const count = (/** @type {Parameters<typeof total>[1]} */ name) => total(shared, name);
  const { user, system } = process.cpuUsage();
  return {
    pid: process.pid,
    uptime: Math.floor(process.uptime()),
    time: requests.now + shared.startedAt,
    version: VERSION,
    pointer_size: 64,
    rusage_user: (user / 1e6).toFixed(6),
    rusage_system: (system / 1e6).toFixed(6),
    max_connections: options.connections,
    curr_connections: Atomics.load(shared.words, SHARED.connections),
    total_connections: count('total_connections'),
    rejected_connections: count('rejected_connections'),
    cmd_get: count('get_hits') + count('get_misses'),
    ...Object.fromEntries(COUNTED.map((name) => [name, count(name)])),
    get_expired: sum(requests, layout.GET_EXPIRED),
    get_flushed: sum(requests, layout.GET_FLUSHED),
    limit_maxbytes: options.memory * layout.MB,
    accepting_conns: 1,
    threads: options.threads,
    hash_bytes: stores.reduce((all, { table }) => all + table.byteLength, 0),
    slabs_moved: sum(requests, layout.PAGES_MOVED),
    bytes: sum(requests, layout.BYTES),
    curr_items: sum(requests, layout.ITEMS),
    total_items: sum(requests, layout.TOTAL_ITEMS),
    evictions: sum(requests, layout.EVICTIONS),
    reclaimed: sum(requests, layout.RECLAIMED),
  };
}

/** @type {Parameters<typeof total>[1][]} */
const COUNTED = [
  'cmd_set',
  'cmd_flush',
  'cmd_touch',
  'cmd_meta',
  'get_hits',
  'get_misses',
  'delete_misses',
  'delete_hits',
  'incr_misses',
  'incr_hits',
  'decr_misses',
  'decr_hits',
  'cas_misses',
  'cas_hits',
  'cas_badval',
  'touch_hits',
  'touch_misses',
  'store_too_large',
  'store_no_memory',
  'bytes_read',
  'bytes_written',
];

/** @param {Requests} requests @returns {Record<string, string | number>} */
const settings = ({ options, shared }) => ({
  maxbytes: options.memory * layout.MB,
  maxconns: options.connections,
  tcpport: options.port,
  udpport: 0,
  inter: options.address,
  verbosity: shared.words[SHARED.verbosity],
  evictions: 'on',
  growth_factor: '1.25',
  num_threads: options.threads,
  cas_enabled: 'yes',
  binding_protocol: 'ascii',
  item_size_max: layout.PAGE_BYTES,
  flush_enabled: 'yes',
});

/** Sums over the stores, of each class that has pages. @param {Requests} requests @param {(cls: number, word: (word: number) => number) => Record<string, number>} row */
function ofClasses({ stores }, row) {
  /** @type {Record<string, number>} */
  const rows = {};
  for (let cls = 1; cls < layout.SIZES.length; cls++) {
    const word = (/** @type {number} */ index) =>
      stores.reduce((all, store) => all + (store.words[store.classAt(cls) + index] >>> 0), 0);
    if (word(layout.PAGES) > 0) Object.assign(rows, row(cls, word));
  }
  return rows;
}

/** @param {Requests} requests */
const ofItems = (requests) =>
  ofClasses(requests, (cls, word) => ({
    [`items:${cls}:number`]: word(layout.COUNT),
    [`items:${cls}:evicted`]: word(layout.EVICTED),
  }));

/** @param {Requests} requests */
const ofSlabs = (requests) =>
  ofClasses(requests, (cls, word) => {
    const perPage = Math.floor(layout.PAGE_BYTES / layout.SIZES[cls]);
    return {
      [`${cls}:chunk_size`]: layout.SIZES[cls],
      [`${cls}:chunks_per_page`]: perPage,
      [`${cls}:total_pages`]: word(layout.PAGES),
      [`${cls}:total_chunks`]: word(layout.PAGES) * perPage,
      [`${cls}:used_chunks`]: word(layout.COUNT),
    };
  });

/** @type {Map<string, (requests: Requests) => Record<string, string | number>>} */
const REPORTS = new Map([
  ['', general],
  ['settings', settings],
  ['items', ofItems],
  ['slabs', ofSlabs],
]);

/** @type {import('./requests.js').Command} */
export function stats(requests, connection) {
  requests.spend(connection, COST);
  const { line, output, shared, stores } = requests;
  const name = line.text(1);
  if (name === 'reset') {
    for (const row of shared.rows) row.fill(0);
    for (const { doubles } of stores) doubles.fill(0, layout.TOTAL_ITEMS, layout.PAGES_MOVED + 1);
    return output.put(RESET);
  }
  if (name === 'detail') return output.put(DETAIL_USAGE);
  const report = REPORTS.get(name);
  if (!report) return output.put(ERROR);
  const lines = Object.entries(report(requests)).map(([key, value]) => `STAT ${key} ${value}\r\n`);
  return output.text(`${lines.join('')}END\r\n`);
}
