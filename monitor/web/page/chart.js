/*
 * One chart: uPlot, with a legend that has the values at the crosshair or now, and a text for those who can't see it.
 */
import { element, setText } from './dom.js';
import { clock, HEIGHT, heightsOf, optionsOf } from './plot.js';

/** @typedef {import('uplot')} Plot */
/** @typedef {import('./plot.js').Panel} Panel */
/** @typedef {import('./plot.js').Values} Values */

const { uPlot } = /** @type {{ uPlot: typeof import('uplot') }} */ (/** @type {unknown} */ (globalThis));
/** The text for screen readers changes no more often than this. */
const LABEL_MS = 5000;
/** How far the keys move the crosshair, in points. @type {Record<string, number>} */
const STEPS = { ArrowLeft: -1, ArrowRight: 1, PageUp: -30, PageDown: 30, Home: -1e6, End: 1e6 };

export class Chart {
  /**
   * @param {Panel} panel @param {HTMLElement} parent
   * @param {(at: number | null) => void} onKeys called with the point to which the crosshair of all charts was moved; null for none
   */
  constructor(panel, parent, onKeys) {
    this.panel = panel;
    this.onKeys = onKeys;
    this.values = panel.lines.map(() => element('b', '', '-'));
    this.when = element('span', 'when');
    this.box = element('div', 'plot');
    this.box.tabIndex = 0;
    this.box.setAttribute('role', 'img');
    this.box.setAttribute('aria-label', `Chart: ${panel.title}`);
    const figure = element('figure', 'chart', this.caption(), this.box);
    figure.id = `chart-${panel.id}`;
    parent.append(figure);
    /** In seconds, and the values as they are. @type {number[]} */
    this.times = [];
    /** @type {Values[]} */
    this.real = panel.lines.map(() => []);
    this.labelMs = Number.NEGATIVE_INFINITY;
    this.plot = this.plotIn(this.box);
    this.box.addEventListener('keydown', (event) => this.onKey(event));
  }

  caption() {
    const { title, lines } = this.panel;
    const legend = lines.map(({ label, color, dash }, i) =>
      element('span', 'legend', element('span', `swatch ${color} ${dash}`), `${label} `, this.values[i]),
    );
    return element('figcaption', '', element('h3', '', title), ...legend, this.when);
  }

  /** @param {HTMLElement} box @returns {Plot} as wide as the box */
  plotIn(box) {
    const options = optionsOf(this.panel, box.clientWidth, () => this.showValues());
    const plot = new uPlot(options, [[], ...this.panel.lines.map(() => [])], box);
    new ResizeObserver(() => {
      const width = box.clientWidth;
      if (width > 0 && plot.width !== width) plot.setSize({ width, height: HEIGHT });
    }).observe(box);
    return plot;
  }

  /** @param {number[]} times s @param {Values[]} values of the lines @param {number} rangeS */
  draw(times, values, rangeS) {
    this.real = values;
    this.times = times;
    const end = times.at(-1) ?? Date.now() / 1000;
    this.plot.batch(() => {
      this.plot.setData([times, ...heightsOf(this.panel, values)], false);
      this.plot.setScale('x', { min: end - rangeS, max: end });
    });
    this.showValues();
    this.describe();
  }

  /** At the crosshair, or the last ones. */
  showValues() {
    const { format } = this.panel;
    const at = this.plot?.cursor.idx ?? null;
    this.values.forEach((node, line) => {
      const value = this.real[line][at ?? this.times.length - 1] ?? null;
      setText(node, value === null ? '-' : format(value));
    });
    setText(this.when, at === null || at >= this.times.length ? '' : clock(this.times[at] * 1000));
  }

  describe() {
    const nowMs = performance.now();
    if (nowMs < this.labelMs + LABEL_MS) return;
    this.labelMs = nowMs;
    const { title, lines } = this.panel;
    const texts = lines.map(({ label }, line) => `${label} ${this.textOf(this.real[line])}`);
    this.box.setAttribute(
      'aria-label',
      `Chart: ${title}. ${texts.join('; ')}. Arrow keys move the crosshair.`,
    );
  }

  /** @param {Values} values @returns {string} */
  textOf(values) {
    const { format } = this.panel;
    const last = values.at(-1) ?? null;
    const most = values.reduce((max, value) => (max === null || (value ?? max) > max ? value : max), null);
    if (last === null || most === null) return 'unknown';
    return `${format(last)}, at most ${format(most)}`;
  }

  /** The crosshair by keyboard; Esc hides it. @param {KeyboardEvent} event */
  onKey(event) {
    const { plot, times } = this;
    const step = STEPS[event.key];
    if (times.length === 0 || (step === undefined && event.key !== 'Escape')) return;
    event.preventDefault();
    if (step === undefined) return this.onKeys(null);
    this.onKeys(Math.min(times.length - 1, Math.max(0, (plot.cursor.idx ?? times.length - 1) + step)));
  }

  /** Moves its crosshair. @param {number | null} at */
  point(at) {
    const left = at === null ? -10 : this.plot.valToPos(this.times[at], 'x');
    this.plot.setCursor({ left, top: at === null ? -10 : 10 });
  }
}
