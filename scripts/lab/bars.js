/*
 * Bar charts as Vega-Lite specifications, for figures that are no series over time. Pure. The background is transparent, as in
 * the other charts.
 */
import { AXIS } from '../plot/charts.js';
import { GRAY, RUN_COLORS } from '../plot/wanted.js';

const WIDTH = 520;
const BAR = 22;
const FONT = 'DejaVu Sans, Verdana, Helvetica, Arial, sans-serif';

/** @typedef {Record<string, any>} Spec */

/**
 * @typedef {object} Bar
 * @property {string} name
 * @property {number} value
 * @property {number} least
 * @property {number} most
 * @property {string} label the value as text
 * @property {number} [color] index of a color
 *
 * @typedef {{ title: string, bars: Bar[] }} Panel
 */

/**
 * @param {{ title: string, subtitle: string[], axis: string, panels: Panel[] }} chart `axis`: what the values are, with the unit
 * @returns {Spec} one panel below the other, with the same scale
 */
export function barSpec({ title, subtitle, axis, panels }) {
  const most = Math.max(0, ...panels.flatMap(({ bars }) => bars.map((bar) => bar.most)));
  return {
    $schema: 'https://vega.github.io/schema/vega-lite/v6.json',
    background: 'transparent',
    padding: 12,
    title: { text: title, subtitle, anchor: 'start', frame: 'group', color: GRAY, subtitleColor: GRAY },
    config: CONFIG,
    spacing: 18,
    vconcat: panels.map((panel, i) => panelSpec(panel, most, i === panels.length - 1 ? axis : null)),
  };
}

/** @type {Spec} */
const CONFIG = {
  font: FONT,
  view: { stroke: null },
  axis: AXIS,
  title: { fontSize: 15, subtitleFontSize: 11, subtitlePadding: 4, offset: 10 },
};

/** @param {Panel} panel @param {number} most of all panels @param {string | null} axis null for none @returns {Spec} */
function panelSpec({ title, bars }, most, axis) {
  // Room for the label behind the longest bar.
  const scale = { domain: [0, most * 1.15], nice: false };
  const values = bars.map((bar) => ({ ...bar, color: RUN_COLORS[(bar.color ?? 0) % RUN_COLORS.length] }));
  const x = { field: 'value', type: 'quantitative', scale, axis: { title: axis, tickCount: 6 } };
  const y = {
    field: 'name',
    type: 'nominal',
    sort: null,
    axis: { title: null, ticks: false, domain: false, labelLimit: 0 },
  };
  const color = { field: 'color', type: 'nominal', scale: null };
  return {
    title: {
      text: title,
      fontSize: 12,
      fontWeight: 'normal',
      color: GRAY,
      anchor: 'start',
      frame: 'group',
      offset: 6,
    },
    width: WIDTH,
    height: BAR * bars.length,
    data: { values },
    layer: [
      { mark: { type: 'bar', height: { band: 0.7 } }, encoding: { x, y, color } },
      // From the smallest to the largest value.
      {
        mark: { type: 'rule', color: GRAY },
        encoding: { x: { ...x, field: 'least' }, x2: { field: 'most' }, y },
      },
      {
        mark: { type: 'text', align: 'left', dx: 6, fontSize: 11, color: GRAY },
        encoding: { x: { ...x, field: 'most' }, y, text: { field: 'label' } },
      },
    ],
  };
}
