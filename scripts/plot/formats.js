/*
 * The two kinds of CSV that can be plotted: ours, with the names of monitor/fields.js in its header, and that of the original
 * (node-millenium), with 17 columns and no header.
 */
import { FIELDS } from '../../monitor/fields.js';

/**
 * @typedef {object} Format
 * @property {'holdfast' | 'original'} name
 * @property {string[]} header the columns of the file
 * @property {string[]} unknown columns, which are ignored
 * @property {string[]} notes what readers of the charts must know
 * @property {(row: string[]) => Row} read
 */

/** @typedef {Map<string, number>} Row by field, without fields that are not known */

const MIB = 2 ** 20;
/** Needed for the time axis and for kernel memory. */
const NEEDED = ['time', 'elapsedMs', 'slabBytes', 'kernelSocketBytes'];

/**
 * The columns of the original (`logFrame` in server.js of ashtuchkin/node-millenium): our names for them, and the factor to
 * our units. Its memory is in MiB, its CPU in percent of one core, RSS and heap are those of the workers, and avg and p90 are
 * means over the workers. The first column is the number of the row.
 * @type {[name: string, factor: number][]}
 */
const ORIGINAL = [
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
 * @returns {Format | null} null if it is neither
 */
export function formatOf(first, fields) {
  const names = first.map((name) => name.trim());
  if (names.some(isField)) return ours(names, new Set([...fields, ...NEEDED]));
  const isOriginal = first.length === ORIGINAL.length && first.every((text) => numberOf(text) !== undefined);
  return isOriginal ? original() : null;
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
function original() {
  const header = ORIGINAL.map(([name]) => name);
  const columns = columnsOf(header, new Set(header));
  let before = { pings: 0, elapsedMs: 0 };
  return {
    name: 'original',
    header,
    unknown: [],
    notes: [
      'written by the original (17 columns, no header): kernel memory is everything on the machine except the workers, including other programs',
    ],
    read: (texts) => {
      const row = rowOf(columns, texts);
      for (const [name, factor] of ORIGINAL) row.set(name, (row.get(name) ?? Number.NaN) * factor);
      const now = { pings: row.get('pings') ?? 0, elapsedMs: row.get('elapsedMs') ?? 0 };
      fillOriginal(row, now.pings - before.pings, now.elapsedMs - before.elapsedMs);
      before = now;
      return row;
    },
  };
}

/** @param {Row} row @param {number} pings since the row before @param {number} ms since the row before */
function fillOriginal(row, pings, ms) {
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

/** @param {Row} row @returns {Row} with `kernelBytes`: slab and socket buffers */
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
