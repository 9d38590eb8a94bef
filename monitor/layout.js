/*
 * The layout of the dashboard for a terminal of any size. Pure.
 */

/** @typedef {{ left: number, top: number, width: number, height: number }} Box in characters */

/** @typedef {'header' | 'streams' | 'memory' | 'cpu' | 'ticks' | 'workers' | 'cost' | 'log'} Part */

export const FEWEST_COLUMNS = 60;
export const FEWEST_ROWS = 20;

/** The share of the rows for each row of charts, and for the table. */
const ROW_SHARE = 0.27;
const CHART_ROWS_MIN = 5;
/** Borders, the header, the primary and two workers. */
const TABLE_ROWS_MIN = 7;
const COST_COLUMNS = 18;

/**
 * @param {number} columns
 * @param {number} rows
 * @returns {Record<Part, Box> | null} null if the terminal is too small
 */
export function layout(columns, rows) {
  if (columns < FEWEST_COLUMNS || rows < FEWEST_ROWS) return null;
  const share = Math.floor((rows - 1) * ROW_SHARE);
  const chart = Math.max(CHART_ROWS_MIN, share);
  const table = Math.max(TABLE_ROWS_MIN, share);
  const middle = Math.ceil(columns / 2);
  const tableTop = 1 + 2 * chart;
  const logTop = tableTop + table;
  const left = { left: 0, width: middle, height: chart };
  const right = { left: middle, width: columns - middle, height: chart };
  return {
    header: { left: 0, top: 0, width: columns, height: 1 },
    streams: { ...left, top: 1 },
    memory: { ...right, top: 1 },
    cpu: { ...left, top: 1 + chart },
    ticks: { ...right, top: 1 + chart },
    workers: { left: 0, top: tableTop, width: columns - COST_COLUMNS, height: table },
    cost: { left: columns - COST_COLUMNS, top: tableTop, width: COST_COLUMNS, height: table },
    log: { left: 0, top: logTop, width: columns, height: rows - logTop },
  };
}
