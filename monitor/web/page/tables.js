/*
 * The figures and tables, from the last frame.
 */
import { formatBytes, formatCount, formatElapsed, formatMs, formatNoun } from '../../../lib/format.js';
import { CLOSE_REASONS } from '../../../lib/reasons.js';
import { COST_FROM_STREAMS } from '../../cost.js';
import {
  CPU_KINDS,
  costOf,
  formatCost,
  formatMicros,
  handshakesText,
  MEMORY_KINDS,
  nodeText,
  totalCost,
} from '../../lines.js';
import { byId, element, fillTable, number, setText } from './dom.js';

/** @typedef {import('./store.js').Store} Store */
/** @typedef {import('./dom.js').Cell} Cell */

/** States of workers that need attention, and how much. @type {Record<string, string>} */
const STATES = {
  ready: 'state-good',
  late: 'state-bad',
  dead: 'state-bad',
  draining: 'state-warn',
  gone: 'state-warn',
};

/** @param {number | null} value */
const count = (value) => (value === null ? '-' : formatCount(value));
/** @param {number | null} value */
const bytes = (value) => (value === null ? '-' : formatBytes(value));
/** @param {number | null} value */
const percent = (value) => (value === null ? '-' : `${value.toFixed(value < 9.95 ? 1 : 0)}%`);

/** @param {Store} store */
export function showFrame(store) {
  if (!store.frame) return;
  showFigures(store);
  showWorkers(store);
  showCost(store);
  showCloses(store);
  showBroker(store);
}

/** @param {Store} store @returns {[string, string][]} */
function figuresOf(store) {
  const of = (/** @type {string} */ name) => store.figure(name);
  return [
    ['Streams', count(of('streams'))],
    ['Opened/s', count(of('openedPerSecond'))],
    ['Closed/s', count(of('closedPerSecond'))],
    ['Pings/s', count(of('pingsPerSecond'))],
    ['Late p99', `${formatMs(of('pingLatenessP99Ms'))} ms`],
    ['Deliveries/s', count(of('deliveriesPerSecond'))],
    ['Tick max', `${formatMs(of('tickMaxMs'))} ms`],
    ['Server CPU', percent(of('processCpuPercent'))],
    ['Workers RSS', bytes(of('rssBytes'))],
    ...tlsFigures((name) => of(name) ?? 0),
    ['Uptime', formatElapsed(of('elapsedMs') ?? 0)],
  ];
}

/** @param {(name: string) => number} of a total @returns {[string, string][]} nothing if nobody has tried */
function tlsFigures(of) {
  return of('handshakes') + of('handshakeFailures') === 0 ? [] : [['TLS', handshakesText(of)]];
}

/** @param {Store} store */
function showFigures(store) {
  const list = byId('figures');
  const figures = figuresOf(store);
  if (list.children.length !== figures.length)
    list.replaceChildren(
      ...figures.map(([name]) => element('div', '', element('dt', '', name), element('dd', '', ''))),
    );
  figures.forEach(([name, text], i) => {
    const value = /** @type {HTMLElement} */ (list.children[i].lastElementChild);
    value.dataset.figure = name;
    setText(value, text);
  });
}

/** @param {Store} store */
function showWorkers(store) {
  const { frame, about } = store;
  if (!frame) return;
  const { primary, workers } = frame;
  fillTable('workers', [
    workerRow(store, 'primary', { text: '' }, primary.pid, primary.values, ''),
    ...workers.map(({ id, pid, state, values }) => {
      const failures = store.ofWorker(values, 'shardFailures') ?? 0;
      const shards = `${about?.shards ?? ''}${failures > 0 ? `, ${failures} failed` : ''}`;
      return workerRow(
        store,
        `worker ${id}`,
        { text: state, className: STATES[state] ?? '' },
        pid,
        values,
        shards,
      );
    }),
  ]);
}

/**
 * @param {Store} store @param {string} name @param {Cell} state @param {number} pid @param {(number | null)[]} values @param {string} shards
 * @returns {(Cell | string)[]}
 */
function workerRow(store, name, state, pid, values, shards) {
  const of = (/** @type {string} */ field) => store.ofWorker(values, field);
  const ticks = ['tickAvgMs', 'tickP90Ms', 'tickMaxMs'].map((field) =>
    of(field) === null ? '' : formatMs(of(field)),
  );
  return [
    name,
    state,
    number(String(pid), 'wide'),
    number(of('streams') === null ? '' : count(of('streams'))),
    number(shards, 'wide'),
    number(percent(of('processCpuPercent'))),
    number(bytes(of('rssBytes'))),
    number(ticks[0], 'wide'),
    number(ticks[1], 'wide'),
    number(ticks[2]),
  ];
}

/** @param {Store} store */
function showCost({ totals }) {
  const costs = MEMORY_KINDS.map((kind) => costOf(totals, kind));
  const isUnknown = costs.every((cost) => cost === null);
  const total = totalCost(costs);
  const memory = MEMORY_KINDS.map((kind, i) => [kind.toLowerCase(), number(formatCost(costs[i]))]).reverse();
  fillTable('cost', [
    ...(isUnknown ? [] : [...memory, ['memory in total', number(formatCost(total))]]),
    ...CPU_KINDS.map(({ name, field }) => [`CPU to ${name}`, number(formatMicros(totals[field]))]),
  ]);
  const isMost = [...costs, total].some((cost) => cost?.isMost);
  const note = isUnknown
    ? `Memory is known from ${formatCount(COST_FROM_STREAMS)} streams on, close to their peak.`
    : '';
  setText(byId('cost-note'), note || (isMost ? '< is an upper bound: the value is lost in noise.' : ''));
}

/** @type {{ t: number, counts: Map<string, number>, rates: Map<string, number> }} of the frame before */
let before = { t: 0, counts: new Map(), rates: new Map() };

/** @param {Store} store */
function showCloses(store) {
  const { frame } = store;
  if (!frame) return;
  const counts = new Map(
    [...CLOSE_REASONS, 'lost'].map((reason) => [
      reason,
      store.figure(reason === 'lost' ? 'lost' : `closed${camel(reason)}`) ?? 0,
    ]),
  );
  if (frame.t !== before.t) {
    const seconds = (frame.t - before.t) / 1000;
    const rate = (/** @type {string} */ reason) => {
      const grown = (counts.get(reason) ?? 0) - (before.counts.get(reason) ?? 0);
      return before.t > 0 && grown >= 0 && seconds > 0 ? grown / seconds : 0;
    };
    before = {
      t: frame.t,
      counts,
      rates: new Map([...counts.keys()].map((reason) => [reason, rate(reason)])),
    };
  }
  const seen = [...counts].filter(([, total]) => total > 0).sort((a, b) => b[1] - a[1]);
  const rows = seen.map(([reason, total]) => [
    reason,
    number(count(total)),
    number(count(before.rates.get(reason) ?? 0)),
  ]);
  fillTable('closes', rows, 'No streams closed yet.');
}

/** @param {string} words 'client-gone' → 'ClientGone', as in monitor/fields.js */
function camel(words) {
  return words.replace(/(^|-)(.)/g, (_, __, letter) => letter.toUpperCase());
}

/** @param {Store} store */
function showBroker(store) {
  const { frame } = store;
  const { broker, node } = frame ?? {};
  const of = (/** @type {string} */ name) => store.figure(name);
  const kind = broker && (broker.copy ? `${broker.kind}, with a copy on ${broker.copy}` : broker.kind);
  fillTable('broker', [
    ...(broker
      ? [
          ['broker', number(`${kind}`)],
          ['stored publications', number(count(broker.stored))],
          ['last number', number(count(broker.last))],
        ]
      : []),
    ...(node
      ? [
          [
            'NATS',
            { text: nodeText(node), className: `number ${node.isConnected ? 'state-good' : 'state-bad'}` },
          ],
        ]
      : []),
    ...(node ? [['behind', number(formatNoun(node.behind, 'publication'))]] : []),
    ['streams of the hub', number(count(of('updates')))],
    ['published here', number(count(of('hubPublished')))],
    ['waiting for delivery', number(count(of('hubWaiting')))],
    ['recoveries', number(`${count(of('hubRecoveries'))}, ${count(of('hubEarliest'))} with loss`)],
    ['tokens refused', number(count(of('hubTokensRefused')))],
  ]);
}
