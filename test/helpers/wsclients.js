/*
 * Clients of WebSockets that people have: ws, undici, Chromium, and websockets of Python. All of them answer pings, and offer
 * compression if they can. They check the certificate, except for Chromium.
 */
import { once } from 'node:events';
import { Agent, WebSocket as UndiciSocket } from 'undici';
import { WebSocket } from 'ws';
import { NEEDS_CHROMIUM, startBrowser } from './browser.js';
import { pythonPackage } from './python.js';
import { run } from './server.js';
import { until } from './until.js';

/** @typedef {import('node:test').TestContext} TestContext */

/**
 * @typedef {object} Where
 * @property {string} url ws://… or wss://…
 * @property {string} cert file of the certificate; '' for none
 * @property {string} certText its contents
 *
 * @typedef {object} WebSocketClient
 * @property {string[]} received text messages
 * @property {() => number | undefined} closed with which code; undefined as long as it is open
 * @property {(text: string) => unknown} send
 * @property {() => unknown} leave properly
 */

const python = await pythonPackage('websockets-15.0.1', 'websockets==15.0.1');

/** @type {Record<string, { problem: string | false, open: (t: TestContext, where: Where) => Promise<WebSocketClient> }>} */
export const WEBSOCKET_CLIENTS = {
  ws: { problem: false, open: openWs },
  undici: { problem: false, open: openUndici },
  chromium: { problem: NEEDS_CHROMIUM.skip, open: openChromium },
  'websockets (Python)': { problem: python.problem, open: openPython },
};

/** @param {TestContext} t @param {Where} where @returns {Promise<WebSocketClient>} */
async function openWs(t, { url, certText }) {
  const socket = new WebSocket(url, certText ? { ca: certText } : {});
  t.after(() => socket.terminate());
  const client = listenTo(/** @type {any} */ (socket));
  await once(socket, 'open');
  return client;
}

/** @param {TestContext} t @param {Where} where @returns {Promise<WebSocketClient>} */
async function openUndici(t, { url, certText }) {
  const dispatcher = new Agent(certText ? { connect: { ca: certText } } : {});
  const socket = new UndiciSocket(url, { dispatcher });
  t.after(() => dispatcher.destroy());
  const client = listenTo(/** @type {any} */ (socket));
  await once(socket, 'open');
  return client;
}

/** @param {Pick<WebSocket, 'send' | 'close' | 'addEventListener'>} socket @returns {WebSocketClient} */
function listenTo(socket) {
  /** @type {string[]} */
  const received = [];
  /** @type {number | undefined} */
  let code;
  socket.addEventListener('message', ({ data }) => void received.push(String(data)));
  socket.addEventListener('close', (event) => {
    code = event.code;
  });
  socket.addEventListener('error', () => {});
  return {
    received,
    closed: () => code,
    send: (text) => socket.send(text),
    leave: () => socket.close(),
  };
}

/** @param {TestContext} t @param {Where} where @returns {Promise<WebSocketClient>} */
async function openChromium(t, { url }) {
  const browser = await startBrowser(t);
  const context = await browser.newContext({ ignoreHTTPSErrors: true });
  const page = await context.newPage();
  /** @type {string[]} */
  const received = [];
  /** @type {number | undefined} */
  let code;
  await page.exposeFunction('onData', (/** @type {string} */ data) => void received.push(data));
  await page.exposeFunction('onCode', (/** @type {number} */ given) => {
    code = given;
  });
  await page.evaluate(async (url) => {
    const { onData, onCode } = /** @type {any} */ (globalThis);
    const socket = new WebSocket(url);
    socket.onmessage = ({ data }) => onData(data);
    socket.onclose = ({ code }) => onCode(code);
    Object.assign(globalThis, { socket });
    await new Promise((resolve, reject) => {
      socket.onopen = resolve;
      socket.onerror = () => reject(new Error('it does not open'));
    });
  }, url);
  return {
    received,
    closed: () => code,
    send: (text) => page.evaluate((data) => /** @type {any} */ (globalThis).socket.send(data), text),
    leave: () => page.evaluate(() => /** @type {any} */ (globalThis).socket.close()),
  };
}

/** Sends each line that it reads, as JSON, and closes at the end. */
const PYTHON = `
import json, ssl, sys, threading
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect
url, cert = sys.argv[1:]
context = ssl.create_default_context(cafile=cert) if cert else None
socket = connect(url, ssl=context)
def send():
    for line in sys.stdin:
        socket.send(json.loads(line))
    socket.close()
print(json.dumps('open'), flush=True)
threading.Thread(target=send, daemon=True).start()
try:
    for message in socket:
        print(json.dumps({'data': message}), flush=True)
except ConnectionClosed:
    pass
print(json.dumps({'code': socket.protocol.close_code}), flush=True)
`;

/** @param {TestContext} t @param {Where} where @returns {Promise<WebSocketClient>} */
async function openPython(t, { url, cert }) {
  const { output, child } = run(t, `${python.folder}/python`, ['-c', PYTHON, url, cert]);
  /** @type {string[]} */
  const received = [];
  /** @type {number | undefined} */
  let code;
  let seen = 0;
  const read = () => {
    const lines = output.stdout.slice(seen).split('\n');
    for (const line of lines.slice(0, -1)) {
      const said = JSON.parse(line);
      if (said.data !== undefined) received.push(said.data);
      if (said.code !== undefined) code = said.code;
    }
    seen = output.stdout.length - (lines.at(-1) ?? '').length;
  };
  child.stdout?.on('data', () => setImmediate(read));
  await until(
    () => output.stdout.includes('"open"'),
    () => `it is open: ${output.stderr}`,
  );
  return {
    received,
    closed: () => code,
    send: (text) => child.stdin?.write(`${JSON.stringify(text)}\n`),
    leave: () => child.stdin?.end(),
  };
}
