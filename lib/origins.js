/*
 * Lists of web origins, as in --cors-origins, and URLs as in --jwks-url. Pure. RFC 6454, section 6.2.
 *
 *     https://example.com      exactly this one; a port that is not the scheme's own is part of it
 *     https://*.example.com    every subdomain of it, at any depth
 *     capacitor://             every origin of this scheme; not for http and https
 *     null                     pages without an origin of their own, such as files and sandboxed frames
 *     *                        every origin
 */

const RULE = /^([a-z][a-z0-9+.-]*):\/\/(\*\.)?([a-z0-9._-]+|\[[0-9a-f:.]+\])?(:[0-9]{1,5})?\/?$/i;
const LABELS = /^[a-z0-9-]+(\.[a-z0-9-]+)*$/i;
/** Ports that a browser leaves out. @type {Record<string, string>} */
const OWN_PORTS = { 'http:': ':80', 'https:': ':443' };

/** @param {string} text @returns {string | undefined} the rule as browsers write origins; undefined if it is none */
export function readOrigin(text) {
  if (text === '*' || text === 'null') return text;
  const [, scheme, wildcard = '', host = '', port = ''] = RULE.exec(text.toLowerCase()) ?? [];
  if (!scheme) return undefined;
  const isWeb = `${scheme}:` in OWN_PORTS;
  if (host === '' && (wildcard || port || isWeb)) return undefined;
  return `${scheme}://${wildcard}${host}${port === OWN_PORTS[`${scheme}:`] ? '' : port}`;
}

/** @param {string} text @returns {boolean} whether it is a URL that can be fetched, without a user or password */
export function isHttpUrl(text) {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password } = new URL(text);
  return /^https?:$/.test(protocol) && username === '' && password === '';
}

/**
 * @param {readonly string[]} rules from `readOrigin`
 * @returns {(origin: string) => boolean} whether one of them allows it; '*' is not looked at
 */
export function inOrigins(rules) {
  const exact = new Set(rules.filter((rule) => rule !== '*'));
  const schemes = rules.filter((rule) => rule.endsWith('://'));
  const wildcards = rules.filter((rule) => rule.includes('://*.')).map((rule) => rule.split('*'));
  return (origin) =>
    exact.has(origin) ||
    schemes.some((scheme) => origin.startsWith(scheme)) ||
    wildcards.some(([start, end]) => isBetween(origin, start, end));
}

/** @param {string} origin @param {string} start 'https://' @param {string} end '.example.com' @returns {boolean} */
function isBetween(origin, start, end) {
  if (!origin.startsWith(start) || !origin.endsWith(end)) return false;
  return LABELS.test(origin.slice(start.length, -end.length));
}
