/*
 * The two kinds of CSV that can be plotted: ours, whose header names the fields of monitor/fields.js, and that of the
 * ancestor, which has 17 columns and no header.
 */
import { FIELDS } from '../../monitor/fields.js';

/**
 * @typedef {object} Format
 * @property {'holdfast' | 'ancestor'} name
 * @property {string[]} header the columns of the file
 * @property {string[]} unknown columns that are left out
 * @property {string[]} notes what a reader of the charts must know
 * @property {(row: string[]) => Row} read
 */

/** @typedef {Map<string, number>} Row by field; what is not known is not in it */

const MIB = 2 ** 20;
/** Of which time and kernel memory are made. */
const NEEDED = ['time', 'elapsedMs', 'slabBytes', 'kernelSocketBytes'];

/**
 * The columns of the ancestor (`logFrame` in server.js of ashtuchkin/node-millenium), as fields of ours and what
 * one unit of them is. Its memory is in MiB, its CPU in percent of one core, its RSS and heap those of the workers; its
 * avg and p90 are means over the workers. The first is the number of the row.
 * @type {[name: string, factor: number][]}
 */
const ANCESTOR = [
  ['step', 1],
  ['streams', 1],
  ['cpuUserPercent', 1],
  ['cpuSysPercent', 1],
  ['cpuIdlePercent', 1],
  ['processCpuPercent', 1],
  ['memoryUsedBytes', MIB],
  ['memoryCachedBytes', MIB],
  ['rssBytes', MIB],
  ['heapUsedBytes', MIB],
  ['heapTotalBytes', MIB],
  ['tickAvgMs', 1],
  ['tickP90Ms', 1],
  ['tickMaxMs', 1],
  ['elapsedMs', 1],
  ['frameMs', 1],
  ['pings', 1],
];

/**
 * @param {string[]} first the first row of a file @param {string[]} fields that are wanted
 * @returns {Format | null} null where it is neither
 */
export function formatOf(first, fields) {
  const names = first.map((name) => name.trim());
  if (names.some(isField)) return ours(names, new Set([...fields, ...NEEDED]));
  const isAncestor = first.length === ANCESTOR.length && first.every((text) => numberOf(text) !== undefined);
  return isAncestor ? ancestor() : null;
}

/** @param {string} name */
const isField = (name) => FIELDS.some((field) => field.name === name);

/** @param {string[]} header @param {Set<string>} fields that are wanted @returns {Format} */
function ours(header, fields) {
  const columns = columnsOf(header, fields);
  return {
    name: 'holdfast',
    header,
    unknown: header.filter((name) => !isField(name)),
    notes: [],
    read: (texts) => withKernel(rowOf(columns, texts)),
  };
}

/** @returns {Format} */
function ancestor() {
  const header = ANCESTOR.map(([name]) => name);
  const columns = columnsOf(header, new Set(header));
  let before = { pings: 0, elapsedMs: 0 };
  return {
    name: 'ancestor',
    header,
    unknown: [],
    notes: [
      'it is of the ancestor (17 columns, no header): kernel memory is what the machine used beyond the workers, other programs included',
    ],
    read: (texts) => {
      const row = rowOf(columns, texts);
      for (const [name, factor] of ANCESTOR) row.set(name, (row.get(name) ?? Number.NaN) * factor);
      const now = { pings: row.get('pings') ?? 0, elapsedMs: row.get('elapsedMs') ?? 0 };
      fillAncestor(row, now.pings - before.pings, now.elapsedMs - before.elapsedMs);
      before = now;
      return row;
    },
  };
}

/** @param {Row} row @param {number} pings since the row before @param {number} ms likewise */
function fillAncestor(row, pings, ms) {
  const of = (/** @type {string} */ name) => row.get(name) ?? 0;
  row.set('heapPhysicalBytes', of('heapTotalBytes'));
  row.set('nativeBytes', of('rssBytes') - of('heapTotalBytes'));
  row.set('kernelBytes', of('memoryUsedBytes') - of('rssBytes'));
  if (ms > 0 && pings >= 0) row.set('pingsPerSecond', (pings * 1000) / ms);
}

/** @param {string[]} header @param {Set<string>} fields @returns {{ name: string, at: number }[]} */
function columnsOf(header, fields) {
  return header.map((name, at) => ({ name, at })).filter(({ name }) => fields.has(name));
}

/** @param {{ name: string, at: number }[]} columns @param {string[]} texts @returns {Row} */
function rowOf(columns, texts) {
  /** @type {Row} */
  const row = new Map();
  for (const { name, at } of columns) {
    const value = name === 'time' ? Date.parse(texts[at]) : numberOf(texts[at]);
    if (value !== undefined && Number.isFinite(value)) row.set(name, value);
  }
  return row;
}

/** @param {Row} row @returns {Row} with `kernelBytes`: the objects and the socket buffers of the kernel */
function withKernel(row) {
  const [slab, sockets] = [row.get('slabBytes'), row.get('kernelSocketBytes')];
  if (slab !== undefined && sockets !== undefined) row.set('kernelBytes', slab + sockets);
  return row;
}

/** @param {string} text @returns {number | undefined} */
function numberOf(text) {
  const value = text.trim() === '' ? Number.NaN : Number(text);
  return Number.isFinite(value) ? value : undefined;
}
