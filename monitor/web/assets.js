/*
 * The files of the dashboard, each at its path in the package, so that the imports of its modules are those of the files. The page
 * needs nothing else, and may load nothing else.
 *
 * Its scripts are modules, which import each other: browsers can't check those against a list of hashes yet, so the policy allows
 * scripts of this origin. These are the only ones that there are: everything else is sent as text or JSON, with nosniff.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

/** The root of the package. */
const ROOT = new URL('../../', import.meta.url);
/** What the page shares with the primary, so that both count and write numbers in the same way. */
const SHARED = [
  'lib/format.js',
  'lib/reasons.js',
  'monitor/cost.js',
  'monitor/lines.js',
  'monitor/web/columns.js',
  'monitor/web/history.js',
];
const PAGE = 'monitor/web/page/';
/** @type {Record<string, string>} */
const TYPES = { js: 'text/javascript', css: 'text/css', html: 'text/html' };

/** Of the page. Trusted types: no script can make elements from text. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join('; ');

/** Of every page of the admin port. */
export const PAGE_HEADERS = { 'Referrer-Policy': 'no-referrer', 'X-Frame-Options': 'DENY' };

/** @typedef {{ path: string, url: URL | string }} Asset */

const { resolve } = createRequire(import.meta.url);

/** @returns {Asset[]} */
function assets() {
  const own = readdirSync(new URL(PAGE, ROOT)).map((name) => PAGE + name);
  const files = [...SHARED, ...own].filter((file) => !file.endsWith('.html'));
  return [
    ...files.map((file) => ({ path: `/${file}`, url: new URL(file, ROOT) })),
    { path: '/uplot.js', url: resolve('uplot/dist/uPlot.iife.min.js') },
    { path: '/uplot.css', url: resolve('uplot/dist/uPlot.min.css') },
  ];
}

/** @returns {import('../../lib/router.js').Route[]} files are read when they are asked for */
export function assetRoutes() {
  return assets().map(({ path, url }) => ({
    methods: ['GET'],
    path,
    isHidden: true,
    handle: () => ({ status: 200, type: typeOf(path), body: readFileSync(url, 'utf8') }),
  }));
}

/** @returns {import('../../lib/router.js').Answer} */
export function page() {
  return {
    status: 200,
    type: typeOf('.html'),
    headers: { ...PAGE_HEADERS, 'Content-Security-Policy': POLICY },
    body: readFileSync(new URL(`${PAGE}index.html`, ROOT), 'utf8'),
  };
}

/** @param {string} path */
function typeOf(path) {
  return `${TYPES[path.split('.').at(-1) ?? '']}; charset=utf-8`;
}
