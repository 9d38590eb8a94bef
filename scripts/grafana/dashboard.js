/*
 * The table of panels.js as a dashboard of Grafana (schema version 39, Grafana 10.2 and later). Pure.
 */

/** @typedef {import('./panels.js').Panel} Panel */
/** @typedef {import('./panels.js').Row} Row */

const COLUMNS = 24;
const WIDTH = 8;
const HEIGHTS = { timeseries: 8, heatmap: 8, stat: 4 };
const DATASOURCE = { type: 'prometheus', uid: '$datasource' };
/** The servers that are chosen on top of the dashboard. */
const CHOSEN = 'job="$job",instance=~"$instance"';

/** @param {Row[]} rows @returns {Record<string, unknown>} the dashboard */
export function dashboardOf(rows) {
  return {
    uid: 'holdfast',
    title: 'Holdfast',
    description: 'Made by node scripts/grafana.js from the table scripts/grafana/panels.js.',
    tags: ['holdfast'],
    schemaVersion: 39,
    editable: true,
    graphTooltip: 1,
    refresh: '15s',
    time: { from: 'now-1h', to: 'now' },
    templating: { list: variables() },
    panels: panelsOf(rows),
  };
}

/** @returns {Record<string, unknown>[]} */
function variables() {
  const query = (/** @type {string} */ name, /** @type {string} */ text, /** @type {boolean} */ isMulti) => ({
    name,
    type: 'query',
    datasource: DATASOURCE,
    query: { query: text, refId: name },
    refresh: 2,
    sort: 1,
    multi: isMulti,
    includeAll: isMulti,
    ...(isMulti ? { current: { text: 'All', value: '$__all' } } : {}),
  });
  return [
    { name: 'datasource', type: 'datasource', query: 'prometheus' },
    query('job', 'label_values(holdfast_workers, job)', false),
    query('instance', 'label_values(holdfast_workers{job="$job"}, instance)', true),
  ];
}

/** @param {Row[]} rows @returns {Record<string, unknown>[]} with their places, from top to bottom */
function panelsOf(rows) {
  /** @type {Record<string, unknown>[]} */
  const placed = [];
  let y = 0;
  for (const { title, panels } of rows) {
    const id = placed.length + 1;
    placed.push({
      id,
      type: 'row',
      title,
      collapsed: false,
      panels: [],
      gridPos: { x: 0, y, w: COLUMNS, h: 1 },
    });
    y++;
    let x = 0;
    for (const panel of panels) {
      const [w, h] = sizeOf(panel);
      if (x + w > COLUMNS) [x, y] = [0, y + h];
      placed.push({ id: placed.length + 1, gridPos: { x, y, w, h }, ...panelOf(panel) });
      x += w;
    }
    y += sizeOf(panels[0])[1];
  }
  return placed;
}

/** @param {Panel} panel @returns {[width: number, height: number]} */
function sizeOf({ type = 'timeseries', width = type === 'stat' ? 4 : WIDTH }) {
  return [width, HEIGHTS[type]];
}

/** @param {Panel} panel */
function panelOf({ title, help, unit, shows, type = 'timeseries', isStacked = false, isLog = false }) {
  return {
    type,
    title,
    description: help,
    datasource: DATASOURCE,
    fieldConfig: {
      defaults: { unit, custom: type === 'timeseries' ? lines(isStacked, isLog) : {} },
      overrides: [],
    },
    options: OPTIONS[type],
    targets: shows.map(([expression, legend], i) => ({
      refId: String.fromCharCode('A'.charCodeAt(0) + i),
      datasource: DATASOURCE,
      expr: chosen(expression),
      legendFormat: legend,
      ...(type === 'heatmap' ? { format: 'heatmap' } : {}),
      ...(type === 'stat' ? { instant: true } : {}),
    })),
  };
}

/** @param {boolean} isStacked @param {boolean} isLog */
function lines(isStacked, isLog) {
  return {
    lineWidth: 1,
    fillOpacity: isStacked ? 25 : 0,
    showPoints: 'never',
    stacking: { mode: isStacked ? 'normal' : 'none' },
    scaleDistribution: isLog ? { type: 'log', log: 10 } : { type: 'linear' },
  };
}

const OPTIONS = {
  timeseries: {
    legend: { displayMode: 'list', placement: 'bottom' },
    tooltip: { mode: 'multi', sort: 'desc' },
  },
  stat: { colorMode: 'none', graphMode: 'area', reduceOptions: { calcs: ['lastNotNull'] } },
  heatmap: {
    calculate: false,
    yAxis: { unit: 's' },
    legend: { show: true },
    tooltip: { mode: 'single', yHistogram: false },
  },
};

/** @param {string} expression @returns {string} for the servers that are chosen */
export function chosen(expression) {
  return expression.replace(
    /\{(?!\{)([^{}]*)\}(?!\})/g,
    (_, labels) => `{${labels ? `${CHOSEN},${labels}` : CHOSEN}}`,
  );
}
