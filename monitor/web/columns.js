/*
 * The values that have a history: what the charts of the page are drawn from. The primary and the page use the same table. Pure.
 */

/**
 * @typedef {object} Column
 * @property {string} name
 * @property {'last' | 'mean' | 'max'} merge how the values of several frames become one point: percentiles can't be averaged, so
 *   the worst one is kept, and the maximum is never lost
 * @property {(value: (field: string) => number | null) => number | null} read from the totals of a frame; null if unknown
 */

/** @param {string} name @param {Column['merge']} merge @returns {Column} a field as it is */
const field = (name, merge) => ({ name, merge, read: (value) => value(name) });

/** @param {string} name @param {Column['merge']} merge @param {string[]} fields @returns {Column} */
const sum = (name, merge, ...fields) => ({
  name,
  merge,
  read: (value) => {
    const values = fields.map(value).filter((one) => one !== null);
    return values.length === 0 ? null : values.reduce((all, one) => all + one, 0);
  },
});

/** @type {readonly Column[]} */
export const COLUMNS = [
  field('streams', 'last'),
  field('openedPerSecond', 'mean'),
  field('closedPerSecond', 'mean'),
  field('pingsPerSecond', 'mean'),
  field('deliveriesPerSecond', 'mean'),
  sum('kernelBytes', 'last', 'slabBytes', 'kernelSocketBytes'),
  field('nativeBytes', 'last'),
  field('heapPhysicalBytes', 'last'),
  sum('machinePercent', 'mean', 'cpuUserPercent', 'cpuSysPercent'),
  field('processCpuPercent', 'mean'),
  field('tickAvgMs', 'mean'),
  field('tickP90Ms', 'max'),
  field('tickMaxMs', 'max'),
  field('pingLatenessP50Ms', 'max'),
  field('pingLatenessP99Ms', 'max'),
  field('pingLatenessMaxMs', 'max'),
  field('backlogBytes', 'max'),
  field('queuedBytes', 'max'),
  field('queueBytes', 'max'),
];

/** @param {(field: string) => number | null} value of a field @returns {(number | null)[]} in the order of COLUMNS */
export function pointOf(value) {
  return COLUMNS.map(({ read }) => read(value));
}
