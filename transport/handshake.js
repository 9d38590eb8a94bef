/*
 * Requests for a WebSocket (RFC 6455, section 4.2). Pure. The native core checks the same (native/core/src/head.rs).
 */
import { createHash } from 'node:crypto';

/** RFC 6455, section 1.3. */
const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
const VERSION = '13';
/** 16 bytes in base64. */
const KEY = /^[A-Za-z0-9+/]{22}==$/;

/** @typedef {Pick<import('node:http').IncomingMessage, 'method' | 'httpVersion' | 'headers'>} Asking */

/**
 * @param {Asking} request
 * @returns {{ status: 0 | 400 | 405 | 426, why: string }} the status that refuses it, and one line; 0 and '' if it asks for a WebSocket in the right way
 */
export function problemOf({ method, httpVersion, headers }) {
  if (method !== 'GET' && method !== 'HEAD') return { status: 405, why: `its method is ${method}, not GET` };
  const problem = askingProblem(method, httpVersion, headers);
  if (problem) return { status: 426, why: problem };
  if (!KEY.test(headers['sec-websocket-key'] ?? ''))
    return { status: 400, why: 'its Sec-WebSocket-Key is not 16 bytes in base64' };
  return { status: 0, why: '' };
}

/** @param {string | undefined} method @param {string} version @param {Asking['headers']} headers @returns {string} '' if nothing */
function askingProblem(method, version, headers) {
  if (method === 'HEAD') return 'its method is HEAD, not GET';
  if (version !== '1.1') return `it is a request of HTTP/${version}, not HTTP/1.1`;
  if (!hasToken(headers.upgrade, 'websocket')) return 'it has no header Upgrade: websocket';
  if (!hasToken(headers.connection, 'upgrade')) return 'it has no header Connection: Upgrade';
  if (headers['sec-websocket-version'] !== VERSION) return `its Sec-WebSocket-Version is not ${VERSION}`;
  return '';
}

/** @param {string | undefined} list such as 'keep-alive, Upgrade' @param {string} token */
function hasToken(list = '', token) {
  return list.split(',').some((one) => one.trim().toLowerCase() === token);
}

/** @param {string} key of a request @returns {string} the value of Sec-WebSocket-Accept */
export function acceptOf(key) {
  return createHash('sha1')
    .update(key + GUID)
    .digest('base64');
}
