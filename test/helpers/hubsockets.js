/*
 * Clients of a hub that are not EventSources: WebSockets, lines of JSON, and polls.
 */
import { WebSocket } from 'ws';
import { PATH } from './hub.js';
import { until } from './until.js';

/** @typedef {{ id?: string, type?: string, topic?: string, data?: string, cursor?: string, missing?: boolean, more?: string, ref?: number | string, ids?: string[], error?: string, status?: number }} Said what a hub says in JSON */

/**
 * @param {import('node:test').TestContext} t @param {number} port @param {string} [query]
 * @param {Record<string, string>} [headers]
 */
export async function openSocket(t, port, query = '', headers = {}) {
  const socket = new WebSocket(`ws://127.0.0.1:${port}${PATH}?${query}`, { headers });
  t.after(() => socket.terminate());
  const client = socketClient(socket);
  await until(() => client.messages.length > 0 || client.closed, 'the first message');
  if (client.refused) throw Object.assign(new Error(client.refused.text), client.refused);
  return client;
}

/** @param {WebSocket} socket */
export function socketClient(socket) {
  let lastRef = 0;
  const client = {
    socket,
    /** All of them. @type {Said[]} */
    messages: [],
    /** Each as it came. @type {string[]} */
    texts: [],
    /** @type {{ code: number, reason: string } | null} */
    closed: null,
    /** @type {{ status: number, text: string, headers: import('node:http').IncomingHttpHeaders } | null} */
    refused: null,
    /** @type {import('node:http').IncomingHttpHeaders} */
    headers: {},
    /** Of publications. */
    datas: () => client.messages.flatMap(({ data }) => data ?? []),
    /** The answer to a request. @param {object | string} request @returns {Promise<Said>} */
    ask: async (request) => {
      const ref = ++lastRef;
      const answer = () => client.messages.find((one) => one.ref === ref);
      socket.send(typeof request === 'string' ? request : JSON.stringify({ ...request, ref }));
      const { ref: _, ...rest } = await until(
        () => answer() ?? (client.closed && {}),
        () => `an answer to ${JSON.stringify(request)}: ${JSON.stringify(client.messages)}`,
      );
      return rest;
    },
    /** @param {object | string} request */
    send: (request) => socket.send(typeof request === 'string' ? request : JSON.stringify(request)),
    untilClosed: () => until(() => client.closed, 'the WebSocket is closed'),
    /** @param {string[]} expected data of all publications so far */
    untilDatas: (expected) =>
      until(
        () => client.datas().length >= expected.length,
        () => `${expected} in ${JSON.stringify(client.messages)}`,
      ),
  };
  socket.on('message', (data) => {
    client.texts.push(String(data));
    client.messages.push(JSON.parse(String(data)));
  });
  socket.on('close', (code, reason) => {
    client.closed = { code, reason: String(reason) };
  });
  socket.on('upgrade', ({ headers }) => {
    client.headers = headers;
  });
  socket.on('unexpected-response', (_request, response) => {
    let text = '';
    response.on('data', (data) => {
      text += data;
    });
    response.on('end', () => {
      client.refused = { status: response.statusCode ?? 0, text, headers: response.headers };
      client.closed = { code: 0, reason: '' };
    });
  });
  socket.on('error', () => {});
  return client;
}

/** @typedef {Awaited<ReturnType<typeof openSocket>>} SocketClient */

/**
 * A stream of lines, read with fetch.
 * @param {import('node:test').TestContext} t @param {number} port @param {string} query
 * @param {RequestInit & { headers?: Record<string, string> }} [options]
 */
export async function openLines(t, port, query, { headers = {}, ...options } = {}) {
  const controller = new AbortController();
  t.after(() => controller.abort());
  const response = await fetch(`http://127.0.0.1:${port}${PATH}?${query}`, {
    headers: { Accept: 'application/x-ndjson', ...headers },
    signal: controller.signal,
    ...options,
  });
  const client = {
    status: response.status,
    headers: response.headers,
    text: '',
    isOver: false,
    messages: () => linesIn(client.text),
    datas: () => client.messages().flatMap(({ data }) => data ?? []),
    close: () => controller.abort(),
    /** @param {number} count */
    untilCount: (count) =>
      until(
        () => client.datas().length >= count,
        () => `${count} in ${client.text}`,
      ),
    untilOver: () => until(() => client.isOver, 'the end'),
  };
  const read = async () => {
    const decoder = new TextDecoder();
    for await (const bytes of response.body ?? []) client.text += decoder.decode(bytes, { stream: true });
  };
  void read()
    .catch(() => {})
    .finally(() => {
      client.isOver = true;
    });
  return client;
}

/** @param {string} text lines; the last one may be incomplete @returns {Said[]} */
export function linesIn(text) {
  return text
    .split('\n')
    .slice(0, -1)
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}

/**
 * @param {number} port @param {string} query @param {RequestInit} [options]
 * @returns {Promise<{ status: number, headers: Headers, text: string, messages: Said[], cursor: string | undefined, missing: boolean | undefined, header: string | null }>}
 */
export async function poll(port, query, options) {
  const response = await fetch(`http://127.0.0.1:${port}${PATH}?${query}`, options);
  const { status, headers } = response;
  const text = await response.text();
  const { messages = [], cursor, missing } = status === 200 ? JSON.parse(text) : {};
  return { status, headers, text, messages, cursor, missing, header: headers.get('last-event-id') };
}
