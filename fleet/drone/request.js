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

/**
 * The head of the request that opens a stream of text or events without topics.
 * @param {Params} params @returns {string}
 */
export function requestOf(params) {
  const { path, channel, format } = params;
  const target = channel ? withQuery(path, `channel=${encodeURIComponent(channel)}`) : path;
  const wanted = format === 'events' ? 'Accept: text/event-stream\r\n' : '';
  return `GET ${target} HTTP/1.1\r\nHost: ${hostOf(params)}\r\n${wanted}\r\n`;
}
