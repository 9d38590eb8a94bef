/*
 * The requests of formats other than text and events. Pure.
 */
import { hostOf, withQuery } from '../request.js';

/** Header lines. Those of a WebSocket have no key yet. @type {Partial<Record<import('../params.js').Format, string>>} */
const HEADERS = {
  ndjson: 'Accept: application/x-ndjson\r\n',
  poll: 'Accept: application/json\r\n',
  websocket: 'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n',
};

/** @typedef {import('../params.js').Params} Params */

/** @param {Params} params @returns {{ query: string, headers: string } | null} null for text and events */
export function partsOf({ format, wait }) {
  const headers = HEADERS[format];
  return headers === undefined ? null : { headers, query: format === 'poll' ? `wait=${wait}` : '' };
}

/** @param {Params} params @returns {string | null} the head that opens a stream without topics; null for text and events */
export function requestOf(params) {
  const parts = partsOf(params);
  if (!parts) return null;
  const { path, channel } = params;
  const own = channel ? withQuery(path, `channel=${encodeURIComponent(channel)}`) : path;
  const target = parts.query ? withQuery(own, parts.query) : own;
  return `GET ${target} HTTP/1.1\r\nHost: ${hostOf(params)}\r\n${parts.headers}\r\n`;
}
