/*
 * What is measured of each server: a grid of cells, and the names of their figures. Pure.
 */
import { figure } from '../figures.js';

export const OPS = /** @type {const} */ (['get', 'set']);
export const CONNECTIONS = [1, 10, 50, 100];
export const BATCHES = [1, 16];
/** Most servers are compared at so many connections, and this is measured for longer. */
export const KEY_CONNECTIONS = 50;

/** @typedef {{ op: 'get' | 'set', batch: number, connections: number }} Cell batch: requests that a connection sends at once */
/** @typedef {keyof typeof PARTS} Part */

/** What is known of each cell. */
const PARTS = /** @type {const} */ ({
  rate: { text: 'requests per second', unit: '1/s' },
  us: { text: 'CPU of the server per request', unit: 'µs' },
  kernelUs: { text: 'CPU of the kernel for the server, per request', unit: 'µs' },
  p50: { text: 'latency, p50', unit: 'ms' },
  p99: { text: 'latency, p99', unit: 'ms' },
  server: { text: 'CPU of the server', unit: '%' },
  client: { text: 'CPU of the client', unit: '%' },
  clientUs: { text: 'CPU of the client per request', unit: 'µs' },
});

/** The steps as nodecached names them: chunk contains all others, request those after it but the last. */
export const STEPS = {
  chunk: 'everything from the bytes that arrived to the answer that is sent',
  request: 'a request',
  read: 'finding the end of its line',
  parse: 'splitting the line',
  hash: 'hashing the key',
  find: 'finding the item',
  allocate: 'making room for an item',
  copy: 'copying the answer',
  write: "handing the answers to Node, which calls the kernel's send",
};

/** @type {Cell[]} */
export const CELLS = OPS.flatMap((op) =>
  BATCHES.flatMap((batch) => CONNECTIONS.map((connections) => ({ op, batch, connections }))),
);

/** The cell that targets are about. @param {'get' | 'set'} op @returns {Cell} */
export const keyCell = (op) => ({ op, batch: 1, connections: KEY_CONNECTIONS });

/** @param {Cell} cell @param {Part} part @returns {string} the name of the figure */
export function nameOf({ op, batch, connections }, part) {
  return `${op}-${batch}-${connections}-${part}`;
}

/** @param {Cell} cell @returns {string} 'get, 50 connections, batches of 16' */
export function cellText({ op, batch, connections }) {
  const words = connections === 1 ? '1 connection' : `${connections} connections`;
  return `${op}, ${words}${batch > 1 ? `, batches of ${batch}` : ''}`;
}

export const FIGURES = [
  ...CELLS.flatMap((cell) =>
    Object.entries(PARTS).map(([part, { text, unit }]) =>
      figure(nameOf(cell, /** @type {Part} */ (part)), `${text} (${cellText(cell)})`, unit),
    ),
  ),
  ...OPS.flatMap((op) =>
    Object.keys(STEPS).map((step) =>
      figure(`${op}-step-${step}`, `${op}: ${step}, of nodecached --profile`, 'µs'),
    ),
  ),
  figure('itemBytes', 'memory per item (PSS)', 'bytes'),
  figure('statsBytes', 'memory per item, as the server counts it', 'bytes'),
];
