/*
 * The dashboard: frames drawn in the terminal with blessed-contrib, of which two widgets are needed (monitor/unused/README.md).
 * Loaded only if it is used.
 */
import blessed from 'blessed';
import canvas from 'blessed-contrib/lib/widget/canvas.js';
import table from 'blessed-contrib/lib/widget/table.js';
import { dotsOf, drawChart, fitCanvas, prepareCanvas, timeAxis } from './chart.js';
import { FEWEST_COLUMNS, FEWEST_ROWS, layout } from './layout.js';
import { costContent, HELP, headerContent, PANELS, TABLE, tableRows } from './panels.js';

/** Frames kept for the charts: more than the widest terminal shows. */
const HISTORY = 600;
/** Lines kept for the log pane: also more than it shows. */
const NOTES = 200;

/** @typedef {keyof typeof PANELS} PanelName */

export class Terminal {
  /**
   * @param {object} commands
   * @param {() => void} commands.quit
   * @param {() => void} commands.collectGarbage
   * @param {number} refreshMs between two frames
   */
  constructor({ quit, collectGarbage }, refreshMs) {
    this.refreshMs = refreshMs;
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
      Object.fromEntries(Object.keys(PANELS).map((name) => [name, this.add(canvas, { border, wrap: false })]))
    );
    this.times = /** @type {Record<PanelName, any>} */ (
      Object.fromEntries(Object.keys(PANELS).map((name) => [name, this.timeAxisOf(name)]))
    );
    this.table = this.add(table, {
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
    fillTable(this.table);
    this.cost = box({ border, label: ' cost/stream ', wrap: false });
    this.log = box({ border, label: ' log - q quit, g gc, ? help ', wrap: false });
    this.help = box({
      border,
      label: ' help ',
      content: HELP.map((line) => ` ${line}`).join('\n'),
      hidden: true,
      wrap: false,
      top: 'center',
      left: 'center',
      width: Math.max(...HELP.map((line) => line.length)) + 4,
      height: HELP.length + 2,
    });
    this.tooSmall = box({
      hidden: true,
      content: `The dashboard needs ${FEWEST_COLUMNS}x${FEWEST_ROWS} characters.`,
    });
    this.screen.key(['q', 'C-c'], quit);
    this.screen.key(['g'], collectGarbage);
    this.screen.key(['?', 'h'], () => this.showHelp(this.help.hidden));
    this.screen.key(['escape'], () => this.showHelp(false));
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

  /** Text on the lower border of a chart. @param {string} name */
  timeAxisOf(name) {
    const parent = this.charts[/** @type {PanelName} */ (name)];
    return blessed.box({
      parent,
      bottom: -1,
      left: 0,
      height: 1,
      right: 0,
      style: { fg: 'cyan' },
      wrap: false,
    });
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
      this.cost.setContent(costContent(frame, Number(this.cost.height) - 2));
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
    chart.setLabel(` ${panel.label(frame, Number(chart.width) - 4)} `);
    this.times[name].setContent(timeAxis(Number(chart.width) - 2, this.refreshMs / 1000));
    drawChart(chart, series, panel.scale(values, rows), panel.format);
  }

  /** @param {boolean} isShown */
  showHelp(isShown) {
    this.help.hidden = !isShown;
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
 * Lets the rows of a table use all of its inside. The widget leaves out the last column, which cuts off digits, and the last
 * line.
 * @param {any} widget
 */
function fillTable(widget) {
  widget.render = () => {
    Object.assign(widget.rows, { width: widget.width - 2, height: widget.height - 3 });
    return blessed.box.prototype.render.call(widget);
  };
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
