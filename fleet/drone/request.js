/*
 * The request that a drone's parameters ask for. Pure.
 */
import { isIP } from 'node:net';
import { hostsOf } from './addresses.js';

/** @typedef {import('./params.js').Params} Params */

/** @param {{ host: string, port: number[] }} params @returns {string} 'host:port' of the first address */
export function hostOf({ host, port }) {
  const [first] = hostsOf(host);
  return `${isIP(first) === 6 ? `[${first}]` : first}:${port[0]}`;
}

/** @param {string} path @param {string} query @returns {string} */
export function withQuery(path, query) {
  return `${path}${path.includes('?') ? '&' : '?'}${query}`;
}

/** What a request for streams of a format has in addition. Dialers add the key of a WebSocket. @type {Record<import('./params.js').Format, string>} */
export const HEADERS = {
  text: '',
  events: 'Accept: text/event-stream\r\n',
  ndjson: 'Accept: application/x-ndjson\r\n',
  poll: 'Accept: application/json\r\n',
  websocket: 'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n',
};

/** @param {Params} params @param {string} path @returns {string} for a poll, with how long it waits */
export function waitingPath({ format, wait }, path) {
  return format === 'poll' ? withQuery(path, `wait=${wait}`) : path;
}

/**
 * The head of the request that opens a stream without topics. That of a WebSocket has no key yet.
 * @param {Params} params @returns {string}
 */
export function requestOf(params) {
  const { path, channel, format } = params;
  const target = waitingPath(
    params,
    channel ? withQuery(path, `channel=${encodeURIComponent(channel)}`) : path,
  );
  return `GET ${target} HTTP/1.1\r\nHost: ${hostOf(params)}\r\n${HEADERS[format]}\r\n`;
}
