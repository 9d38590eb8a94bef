/*
 * One chart: uPlot, with a legend that has the values at the crosshair or now, and a text for those who can't see it.
 */
import { element, setText } from './dom.js';

/** @typedef {import('uplot')} Plot */
/** @typedef {(number | null)[]} Values */

/**
 * @typedef {object} Line
 * @property {string} label
 * @property {string} column
 * @property {'c1' | 'c2' | 'c3'} color
 * @property {'' | 'dashed' | 'dotted'} dash
 *
 * @typedef {object} Panel
 * @property {string} id
 * @property {string} title
 * @property {'linear' | 'log' | 'stack'} kind a stack begins at the top
 * @property {number} least of the top of the axis; of a log scale, its bottom: smaller values are drawn there
 * @property {Line[]} lines
 * @property {(value: number) => string} format with the unit
 * @property {(value: number) => string} axis as short as possible
 */

const { uPlot } = /** @type {{ uPlot: typeof import('uplot') }} */ (/** @type {unknown} */ (globalThis));
const DASHES = { '': [], dashed: [7, 4], dotted: [2, 3] };
const AXIS_WIDTH = 54;
const HEIGHT = 150;
const SYNC = 'holdfast';
/** The text for screen readers changes no more often than this. */
const LABEL_MS = 5000;

/** @param {string} name of a colour */
const colorOf = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

export class Chart {
  /** @param {Panel} panel */
  constructor(panel) {
    this.panel = panel;
    this.values = panel.lines.map(() => element('b', '', '-'));
    this.when = element('span', 'when');
    this.plotBox = element('div', 'plot');
    this.plotBox.tabIndex = 0;
    this.plotBox.setAttribute('role', 'img');
    this.figure = element('figure', 'chart', this.caption(), this.plotBox);
    this.figure.id = `chart-${panel.id}`;
    /** As drawn, and as they are. @type {Values[]} */
    this.real = panel.lines.map(() => []);
    /** @type {number[]} */
    this.times = [];
    /** @type {Plot | null} */
    this.plot = null;
    this.labelMs = Number.NEGATIVE_INFINITY;
    this.plotBox.addEventListener('keydown', (event) => this.onKey(event));
  }

  caption() {
    const { title, lines } = this.panel;
    const legend = lines.map(({ label, color, dash }, i) =>
      element('span', 'legend', element('span', `swatch ${color} ${dash}`), `${label} `, this.values[i]),
    );
    return element('figcaption', '', element('h3', '', title), ...legend, this.when);
  }

  /** @param {HTMLElement} parent */
  mount(parent) {
    parent.append(this.figure);
    const width = this.plotBox.clientWidth;
    this.plot = new uPlot(this.options(width), [[], ...this.panel.lines.map(() => [])], this.plotBox);
    new ResizeObserver(() => {
      const { clientWidth } = this.plotBox;
      if (clientWidth > 0 && this.plot?.width !== clientWidth)
        this.plot?.setSize({ width: clientWidth, height: HEIGHT });
    }).observe(this.plotBox);
  }

  /** @param {number} width @returns {import('uplot').Options} */
  options(width) {
    const { kind, lines, axis } = this.panel;
    const stroke = () => colorOf('soft');
    const grid = { stroke: () => colorOf('grid'), width: 1 };
    const ticks = { show: false };
    const font = '11px system-ui, sans-serif';
    return {
      width,
      height: HEIGHT,
      padding: [8, 8, 0, 0],
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, sync: { key: SYNC }, points: { size: 6 } },
      scales: {
        x: { time: true, range: (_plot, min, max) => [min, max] },
        y: { distr: kind === 'log' ? 3 : 1, range: (_plot, min, max) => this.rangeOf(min, max) },
      },
      axes: [
        { stroke, grid, ticks, font, size: 22, gap: 4, space: 70 },
        {
          stroke,
          grid,
          ticks,
          font,
          size: AXIS_WIDTH,
          gap: 4,
          space: 24,
          values: (_plot, splits) => splits.map((one) => (one === null ? '' : axis(one))),
        },
      ],
      series: [{}, ...lines.map((line, i) => this.seriesOf(line, i))],
      ...(kind === 'stack' ? { bands: this.bands() } : {}),
      hooks: { setCursor: [() => this.showValues()] },
    };
  }

  /** @param {Line} line @param {number} i @returns {import('uplot').Series} */
  seriesOf({ label, color, dash }, i) {
    const { kind, lines } = this.panel;
    const isFilled = kind === 'stack' ? i === lines.length - 1 : kind === 'linear' && lines.length === 1;
    return {
      label,
      stroke: () => colorOf(color),
      width: 1.5,
      dash: DASHES[dash],
      points: { show: false },
      spanGaps: false,
      ...(isFilled ? { fill: () => `${colorOf(color)}${kind === 'stack' ? '66' : '26'}` } : {}),
    };
  }

  /** What is between two lines of a stack has the colour of the upper one. @returns {import('uplot').Band[]} */
  bands() {
    const { lines } = this.panel;
    return lines.slice(0, -1).map(({ color }, i) => ({
      series: [i + 1, i + 2],
      fill: () => `${colorOf(color)}66`,
    }));
  }

  /** @param {number | null} min @param {number | null} max @returns {[number, number]} */
  rangeOf(min, max) {
    const { kind, least } = this.panel;
    if (kind !== 'log') return [0, Math.max(least, 1.08 * (max ?? 0))];
    const from = 10 ** Math.floor(Math.log10(Math.max(least, min ?? least)));
    return [from, 10 ** Math.ceil(Math.log10(Math.max(from * 10, (max ?? 0) * 1.05)))];
  }

  /** @param {number[]} times s @param {Values[]} values of the lines @param {number} rangeS */
  draw(times, values, rangeS) {
    this.real = values;
    this.times = times;
    const end = times.at(-1) ?? Date.now() / 1000;
    this.plot?.batch(() => {
      this.plot?.setData([times, ...this.drawn(values)], false);
      this.plot?.setScale('x', { min: end - rangeS, max: end });
    });
    this.showValues();
    this.describe();
  }

  /** @param {Values[]} values @returns {Values[]} where they are drawn */
  drawn(values) {
    const { kind, least } = this.panel;
    if (kind === 'log')
      return values.map((list) => list.map((value) => (value === null ? null : Math.max(value, least))));
    if (kind !== 'stack') return values;
    return values.map((list, line) =>
      list.map((value, i) =>
        value === null ? null : values.slice(line).reduce((sum, one) => sum + (one[i] ?? 0), 0),
      ),
    );
  }

  /** At the crosshair, or the last ones. */
  showValues() {
    const { format } = this.panel;
    const idx = this.plot?.cursor.idx ?? null;
    const at = idx ?? this.times.length - 1;
    this.values.forEach((node, line) => {
      const value = this.real[line][at] ?? null;
      setText(node, value === null ? '-' : format(value));
    });
    setText(this.when, idx === null ? '' : new Date(this.times[idx] * 1000).toLocaleTimeString());
  }

  describe() {
    const nowMs = performance.now();
    if (nowMs < this.labelMs + LABEL_MS) return;
    this.labelMs = nowMs;
    const { title, lines, format } = this.panel;
    const parts = lines.map(({ label }, line) => {
      const known = this.real[line].filter((value) => value !== null);
      const last = this.real[line].at(-1) ?? null;
      if (known.length === 0) return `${label} unknown`;
      const most = known.reduce((most, value) => Math.max(most, value), Number.NEGATIVE_INFINITY);
      return `${label} ${last === null ? 'unknown' : format(last)}, at most ${format(most)}`;
    });
    this.plotBox.setAttribute(
      'aria-label',
      `Chart: ${title}. ${parts.join('; ')}. Arrow keys move the crosshair.`,
    );
  }

  /** The crosshair by keyboard. @param {KeyboardEvent} event */
  onKey(event) {
    const { plot, times } = this;
    const steps = {
      ArrowLeft: -1,
      ArrowRight: 1,
      PageUp: -30,
      PageDown: 30,
      Home: -times.length,
      End: times.length,
    }[event.key];
    if (!plot || times.length === 0 || (steps === undefined && event.key !== 'Escape')) return;
    event.preventDefault();
    if (steps === undefined) return plot.setCursor({ left: -10, top: -10 });
    const at = Math.min(times.length - 1, Math.max(0, (plot.cursor.idx ?? times.length - 1) + steps));
    plot.setCursor({ left: plot.valToPos(times[at], 'x'), top: 10 });
  }
}
