/*
 * The dashboard: frames drawn in the terminal with blessed-contrib. Loaded only if it is used.
 */
import blessed from 'blessed';
import contrib from 'blessed-contrib';
import { dotsOf, drawChart, fitCanvas, prepareCanvas } from './chart.js';
import { FEWEST_COLUMNS, FEWEST_ROWS, layout } from './layout.js';
import { costContent, headerContent, PANELS, TABLE, tableRows } from './panels.js';

/** Frames kept for the charts: more than the widest terminal shows. */
const HISTORY = 600;
/** Lines kept for the log pane: also more than it shows. */
const NOTES = 200;

const HELP = `
  q, Ctrl-C   drain and exit; press again to quit now
  g           collect garbage in every worker now
  up, down    scroll the workers
  ?           show or hide this help

  kernel   slab and socket buffers of the machine
  native   memory of the workers minus their JS heap
  heap     JS heap of the workers
  ticks    time between two runs of a 10 ms interval
  cost     memory growth since the first stream, per
           stream; µs of CPU to open, ping and deliver
           (hold transport only)
  CPU      100% is one core
`;

/** @typedef {keyof typeof PANELS} PanelName */

export class Terminal {
  /**
   * @param {object} commands
   * @param {() => void} commands.quit
   * @param {() => void} commands.collectGarbage
   */
  constructor({ quit, collectGarbage }) {
    /** @type {import('./frame.js').Frame[]} */
    this.frames = [];
    /** @type {string[]} */
    this.notes = [];
    this.screen = makeScreen();
    const box = (/** @type {object} */ options) =>
      blessed.box({ parent: this.screen, tags: true, ...options });
    const border = { type: 'line', fg: 'cyan' };
    this.header = box({ style: { inverse: true } });
    // Without `wrap: false` a full row that ends in a colour would wrap, and push the rest down.
    this.charts = /** @type {Record<PanelName, any>} */ (
      Object.fromEntries(
        Object.keys(PANELS).map((name) => [name, this.add(contrib.canvas, { border, wrap: false })]),
      )
    );
    this.table = this.add(contrib.table, {
      border,
      label: ' workers ',
      columnSpacing: 1,
      columnWidth: TABLE.widths,
      keys: true,
      interactive: true,
      fg: 'white',
      selectedFg: 'black',
      selectedBg: 'cyan',
    });
    this.cost = box({ border, label: ' cost/stream ', wrap: false });
    this.log = box({ border, label: ' log - q quit, g gc, ? help ', wrap: false });
    this.help = box({
      border,
      label: ' help ',
      content: HELP,
      hidden: true,
      top: 'center',
      left: 'center',
      width: 58,
      height: 17,
    });
    this.tooSmall = box({
      hidden: true,
      content: `The dashboard needs ${FEWEST_COLUMNS}x${FEWEST_ROWS} characters.`,
    });
    this.screen.key(['q', 'C-c'], quit);
    this.screen.key(['g'], collectGarbage);
    this.screen.key(['?', 'h'], () => this.toggleHelp());
    this.screen.on('resize', () => this.resize());
    this.table.focus();
    this.resize();
  }

  /** @param {(options: any) => any} widget @param {object} options */
  add(widget, options) {
    const made = widget({ tags: true, ...options });
    if (made.type === 'canvas') prepareCanvas(made);
    this.screen.append(made);
    return made;
  }

  /** Moves every part to its place and redraws. */
  resize() {
    const { width, height } = /** @type {{ width: number, height: number }} */ (this.screen);
    const places = layout(width, height);
    const { header, table: workers, cost, log, charts } = this;
    this.tooSmall.hidden = places !== null;
    for (const [part, element] of Object.entries({ header, workers, cost, log, ...charts })) {
      element.hidden = places === null;
      if (places) Object.assign(element.position, places[/** @type {import('./layout.js').Part} */ (part)]);
    }
    Object.assign(this.table.rows, { left: 0, top: 1 });
    if (places) for (const chart of Object.values(charts)) fitCanvas(chart);
    this.draw();
  }

  /** @param {import('./frame.js').Frame} frame */
  show(frame) {
    this.frames.push(frame);
    if (this.frames.length > HISTORY) this.frames.shift();
    this.draw();
  }

  draw() {
    const frame = this.frames.at(-1);
    if (frame && this.tooSmall.hidden) {
      this.header.setContent(headerContent(frame, Number(this.screen.width)));
      for (const name of /** @type {PanelName[]} */ (Object.keys(PANELS))) this.drawPanel(name, frame);
      this.table.setData({ headers: TABLE.headers, data: tableRows(frame) });
      this.cost.setContent(costContent(frame));
    }
    this.log.setContent(this.notes.slice(2 - Number(this.log.height)).join('\n'));
    this.screen.render();
  }

  /** @param {PanelName} name @param {import('./frame.js').Frame} frame the newest */
  drawPanel(name, frame) {
    const panel = PANELS[name];
    const chart = this.charts[name];
    const frames = this.frames.slice(-dotsOf(chart));
    const series = panel.lines.map(({ color, read }) => ({ color, values: frames.map(read) }));
    const values = series.flatMap((one) => one.values.filter((value) => value !== null));
    const rows = Number(chart.height) - 2;
    chart.setLabel(` ${panel.label(frame)} `);
    drawChart(chart, series, panel.scale(values, rows), panel.format);
  }

  toggleHelp() {
    this.help.toggle();
    this.help.setFront();
    this.screen.render();
  }

  /** @param {string} line */
  note(line) {
    const time = new Date().toTimeString().slice(0, 8);
    this.notes.push(`${time} ${blessed.escape(line)}`);
    if (this.notes.length > NOTES) this.notes.shift();
    this.draw();
  }

  /** Restores the terminal. */
  close() {
    this.screen.destroy();
  }
}

/**
 * Borders are drawn with Unicode box characters. With a TERM that has line drawing, blessed would send letters of the
 * alternate character set instead, which show as letters in terminals that ignore it.
 */
function makeScreen() {
  const screen = quietly(() => blessed.screen({ smartCSR: true, forceUnicode: true, title: 'Holdfast' }));
  /** @type {{ brokenACS: boolean }} */ (/** @type {any} */ (screen.program).tput).brokenACS = true;
  return screen;
}

/**
 * Some terminfo entries (screen-256color) contain a string that blessed can't compile. It has a fallback for that, but
 * prints the string first.
 * @template T
 * @param {() => T} make
 * @returns {T}
 */
function quietly(make) {
  const { error } = console;
  console.error = () => {};
  try {
    return make();
  } finally {
    console.error = error;
  }
}
