/*
 * A topic as a URL. Topics and patterns that are relative resolve against the URL of the hub.
 */

/** `URL.parse` came with Node 22.1. @typedef {{ parse?: (url: string, base?: string) => URL | null }} Parser */

/** @param {string} text @param {string} [baseUrl] */
const parse = (text, baseUrl) =>
  /** @type {Required<Parser>} */ (/** @type {unknown} */ (URL)).parse(text, baseUrl);

/** @param {string} text @param {string} [baseUrl] A constructor that throws costs ten times as much as the question. */
const ask = (text, baseUrl) => (URL.canParse(text, baseUrl) ? new URL(text, baseUrl) : null);

/** @type {(text: string, baseUrl?: string) => URL | null} null if it is not a URL */
export const resolve = 'parse' in URL ? parse : ask;

/** The topic that was resolved last, because one is often compared with many patterns. @type {{ topic: string, baseUrl: string, url: URL | null }} */
let last = { topic: '', baseUrl: '', url: null };

/** @param {string} topic @param {string} baseUrl @returns {URL | null} as `resolve`; not to be changed */
export function addressOf(topic, baseUrl) {
  if (last.topic !== topic || last.baseUrl !== baseUrl)
    last = { topic, baseUrl, url: resolve(topic, baseUrl) };
  return last.url;
}
