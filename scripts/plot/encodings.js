/*
 * Axes in the form that Vega-Lite needs. Pure.
 */
import { byteUnit, logAxis, niceEnd } from './axes.js';

/** @typedef {import('./series.js').Panel} Panel */
/** @typedef {Record<string, any>} Spec a part of a specification */
/**
 * @typedef {object} ValueAxis
 * @property {[number, number]} domain
 * @property {number[] | null} marks null if Vega chooses them
 * @property {string} title
 * @property {number} factor of the unit in the title
 * @property {boolean} isLog
 */

/** @param {Panel} panel @param {number[]} values @returns {ValueAxis} */
export function valueAxis({ title, unit, isLog }, values) {
  const most = values.reduce((a, b) => Math.max(a, b), 0);
  if (isLog && most > 0) {
    const least = values.reduce((a, b) => Math.min(a, b), most);
    return { ...logAxis(least * 0.9, most), title: `${title} (${unit}, log scale)`, factor: 1, isLog };
  }
  return linearAxis(most, title, unit === 'bytes' ? byteUnit(most) : { unit: unitWords(unit), factor: 1 });
}

/** @param {number} most @param {string} title @param {{ unit: string, factor: number }} of @returns {ValueAxis} */
function linearAxis(most, title, { unit, factor }) {
  const end = niceEnd(most / factor) * factor;
  return { domain: [0, end], marks: null, title: `${title} (${unit})`, factor, isLog: false };
}

/** @param {string} unit of a field @returns {string} for the title of an axis */
export function unitWords(unit) {
  return unit === '%' ? '% of one core' : unit;
}

/** @param {number[]} values @returns {ValueAxis} */
export function streamsAxis(values) {
  const most = values.reduce((a, b) => Math.max(a, b), 0);
  return linearAxis(most, 'streams', { unit: 'count', factor: 1 });
}

/** @param {import('./axes.js').TimeAxis} axis @param {boolean} isLast @returns {Spec} */
export function timeEncoding({ end, marks, labelStep, strongStep, title, form }, isLast) {
  const labels = {
    'm:ss': "floor(datum.value / 60) + ':' + format(datum.value % 60, '02d')",
    min: 'datum.value / 60',
    'h:mm': "floor(datum.value / 3600) + ':' + format(floor(datum.value / 60) % 60, '02d')",
  };
  const isStrong = { test: `datum.value % ${strongStep} === 0`, value: 0.7 };
  return {
    field: 't',
    type: 'quantitative',
    scale: { domain: [0, end], nice: false },
    axis: {
      title: isLast ? title : null,
      values: marks,
      labelExpr: `datum.value % ${labelStep} === 0 ? ${labels[form]} : ''`,
      labelOverlap: false,
      labelFlush: false,
      gridOpacity: { condition: isStrong, value: marks.length > 40 ? 0.06 : 0.15 },
      tickSize: { condition: { test: `datum.value % ${labelStep} === 0`, value: 6 }, value: 3 },
    },
  };
}
/** @param {ValueAxis} axis @returns {Spec} */
export function leftEncoding({ domain, marks, title, factor, isLog }) {
  return {
    field: 'v',
    type: 'quantitative',
    scale: { type: isLog ? 'log' : 'linear', domain, nice: false },
    axis: {
      title: title || null,
      ...(marks ? { values: marks } : { tickCount: 5 }),
      labelExpr: `format(datum.value / ${factor}, ',~r')`,
      titlePadding: 10,
      minExtent: 44,
    },
  };
}

/** @param {ValueAxis} axis @param {number} offset from the plot @returns {Spec} */
export function rightEncoding({ domain, title }, offset) {
  const look = { orient: 'right', offset, grid: false, tickCount: 5, labelExpr: "format(datum.value, '~s')" };
  return {
    field: 'v',
    type: 'quantitative',
    scale: { domain, nice: false },
    axis: { ...look, title, titleFontSize: 11, titlePadding: 8, domainDash: [3, 3] },
  };
}
