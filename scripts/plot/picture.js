/*
 * From a Vega-Lite specification to SVG, and from SVG to PNG.
 */
import { Resvg } from '@resvg/resvg-js';
import * as vega from 'vega';
import { compile } from 'vega-lite';

/** Pixels of the PNG per pixel of the SVG. */
const ZOOM = 2;
const FONT = { loadSystemFonts: true, defaultFontFamily: 'DejaVu Sans', sansSerifFamily: 'DejaVu Sans' };

/** @param {Record<string, any>} spec of Vega-Lite @returns {Promise<string>} */
export async function svgOf(spec) {
  const { spec: lower } = compile(/** @type {import('vega-lite').TopLevelSpec} */ (spec));
  const view = new vega.View(vega.parse(lower), { renderer: 'none' });
  try {
    return await view.toSVG();
  } finally {
    view.finalize();
  }
}

/** @param {string} svg @returns {Buffer} */
export function pngOf(svg) {
  return render(svg).asPng();
}

/** @returns {boolean} whether this machine has a font for the text of a PNG (the text of an SVG is drawn by its viewer) */
export function hasFont() {
  const svg = '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="20"><text y="15">ms</text></svg>';
  return render(svg).pixels.some((value) => value > 0);
}

/** @param {string} svg */
function render(svg) {
  return new Resvg(svg, { font: FONT, fitTo: { mode: 'zoom', value: ZOOM } }).render();
}
