/*
 * What a drone's parameters ask for: the request of each stream, and what it subscribes to. Pure.
 */
import { isIP } from 'node:net';
import { hostsOf } from './addresses.js';
import { mapText, piece, templateOf, textPiece } from './template.js';

/** Where hubs are, by the standard. */
export const HUB_PATH = '/.well-known/mercure';

/** @typedef {import('./params.js').Params} Params */

/** @param {Params} params @returns {string} 'host:port' of the first address */
export function hostOf({ host, port }) {
  const [first] = hostsOf(host);
  return `${isIP(first) === 6 ? `[${first}]` : first}:${port[0]}`;
}

/** @param {string} path @param {string} query @returns {string} */
function withQuery(path, query) {
  return `${path}${path.includes('?') ? '&' : '?'}${query}`;
}

/**
 * The head of the request that opens a stream without topics.
 * @param {Params} params @returns {string}
 */
export function requestOf(params) {
  const { path, channel, accept } = params;
  const target = channel ? withQuery(path, `channel=${encodeURIComponent(channel)}`) : path;
  const wanted = accept === 'events' ? 'Accept: text/event-stream\r\n' : '';
  return `GET ${target} HTTP/1.1\r\nHost: ${hostOf(params)}\r\n${wanted}\r\n`;
}

/** @param {Params} params @returns {import('./dial.js').Subscription | null} null without topics */
export function subscriptionOf(params) {
  const { topic, path, mercureLegacy, token, tokenSecret, tokenShared, first, step } = params;
  if (topic.length === 0) return null;
  const topics = topic.map((text) => templateOf(text) ?? []);
  const name = mercureLegacy ? 'topic=' : 'match=';
  const matches = topics.flatMap((one, i) => [
    textPiece(i === 0 ? name : `&${name}`),
    ...mapText(one, encodeURIComponent),
  ]);
  const hasToken = token !== '' || tokenSecret !== '';
  const request = [
    textPiece(`GET ${withQuery(path === '/' ? HUB_PATH : path, '')}`),
    ...matches,
    textPiece(` HTTP/1.1\r\nHost: ${hostOf(params)}\r\nAccept: text/event-stream\r\n`),
    ...(hasToken ? [textPiece('Authorization: Bearer '), piece('token'), textPiece('\r\n')] : []),
    piece('cursor'),
    textPiece('\r\n'),
  ];
  return { request, topics, first, step, isTokenShared: token !== '' || tokenShared };
}
