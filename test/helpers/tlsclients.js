/*
 * Clients that people have, which open a stream of events over TLS: curl, openssl s_client, Python, Node and Chromium. All of them
 * check the certificate, except for Chromium.
 */
import { get } from 'node:https';
import { startBrowser } from './browser.js';
import { run } from './server.js';

/** @typedef {import('node:test').TestContext} TestContext */

/**
 * @typedef {object} Where
 * @property {number} port
 * @property {string} cert file of the certificate
 * @property {string} certText its contents
 * @property {string} target a path, with the query
 * @property {'1.2' | '1.3'} version the only one that the client may use
 *
 * @typedef {object} RealClient
 * @property {() => string} events what it has received of the stream, or at least the data of its events
 * @property {() => string} problem what it says about errors
 * @property {() => Promise<string>} version of TLS as it calls it
 * @property {number} streams that it opens
 * @property {(() => void) | null} updateKeys null if it can't
 * @property {() => void} leave
 */

/** @type {Record<string, { program: string, open: (t: TestContext, where: Where) => Promise<RealClient> }>} */
export const REAL_CLIENTS = {
  curl: { program: 'curl', open: openCurl },
  openssl: { program: 'openssl', open: openOpenssl },
  python: { program: 'python3', open: openPython },
  node: { program: '', open: openNode },
  chromium: { program: 'chromium', open: openChromium },
};

/** @param {TestContext} t @param {Where} where @returns {Promise<RealClient>} */
async function openCurl(t, { port, cert, target, version }) {
  const words = [
    '--silent',
    '--no-buffer',
    '--verbose',
    '--cacert',
    cert,
    '--header',
    'Accept: text/event-stream',
  ];
  const versions = [`--tlsv${version}`, '--tls-max', version];
  const { output, child } = run(t, 'curl', [...words, ...versions, `https://localhost:${port}${target}`]);
  return {
    events: () => output.stdout,
    problem: () => output.stderr,
    version: async () => /SSL connection using (\S+)/.exec(output.stderr)?.[1] ?? '',
    streams: 1,
    updateKeys: null,
    leave: () => void child.kill(),
  };
}

/**
 * Its prompt takes K and k: new keys, with and without asking the server for the same.
 * @param {TestContext} t @param {Pick<Where, 'port' | 'cert'>} where @param {string[]} words more options
 */
export function startOpenssl(t, { port, cert }, words) {
  const always = ['s_client', '-connect', `localhost:${port}`, '-servername', 'localhost', '-CAfile', cert];
  const started = run(t, 'openssl', [...always, '-verify_return_error', '-alpn', 'http/1.1', ...words]);
  started.child.stdin?.on('error', () => {}); // it has ended
  return { ...started, type: (/** @type {string} */ text) => void started.child.stdin?.write(text) };
}

/** @param {TestContext} t @param {Where} where @returns {Promise<RealClient>} */
async function openOpenssl(t, where) {
  const version = where.version === '1.3' ? '-tls1_3' : '-tls1_2';
  const { output, type } = startOpenssl(t, where, [version]);
  type(`GET ${where.target} HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n`);
  return {
    events: () => output.stdout,
    problem: () => output.stderr,
    version: async () => /^New, (\S+),/m.exec(output.stdout)?.[1] ?? '',
    streams: 1,
    updateKeys: where.version === '1.3' ? () => type('K\n') : null,
    leave: () => type('Q\n'),
  };
}

const PYTHON = `
import http.client, ssl, sys
port, cert, target, version = sys.argv[1:]
context = ssl.create_default_context(cafile=cert)
context.minimum_version = context.maximum_version = ssl.TLSVersion['TLSv' + version.replace('.', '_')]
connection = http.client.HTTPSConnection('localhost', int(port), context=context)
connection.request('GET', target, headers={'Accept': 'text/event-stream'})
answer = connection.getresponse()
print(connection.sock.version() if connection.sock else answer.fp.raw._sock.version(), file=sys.stderr, flush=True)
for line in answer:
    sys.stdout.write(line.decode())
    sys.stdout.flush()
`;

/** @param {TestContext} t @param {Where} where @returns {Promise<RealClient>} */
async function openPython(t, { port, cert, target, version }) {
  const { output, child } = run(t, 'python3', ['-c', PYTHON, String(port), cert, target, version]);
  return {
    events: () => output.stdout,
    problem: () => output.stderr,
    version: async () => output.stderr.trim(),
    streams: 1,
    updateKeys: null,
    leave: () => void child.kill(),
  };
}

/** @param {TestContext} t @param {Where} where @returns {Promise<RealClient>} */
async function openNode(t, { port, certText, target, version }) {
  let [text, problem, protocol] = ['', '', ''];
  const versions = /** @type {import('node:tls').SecureVersion} */ (`TLSv${version}`);
  const request = get({
    host: 'localhost',
    port,
    path: target,
    ca: certText,
    agent: false,
    minVersion: versions,
    maxVersion: versions,
    headers: { Accept: 'text/event-stream' },
  });
  t.after(() => request.destroy());
  request.on('error', (error) => {
    problem += error.message;
  });
  request.on('response', (response) => {
    protocol = /** @type {import('node:tls').TLSSocket} */ (response.socket).getProtocol() ?? '';
    response.on('error', () => {});
    response.setEncoding('utf8').on('data', (data) => {
      text += data;
    });
  });
  return {
    events: () => text,
    problem: () => problem,
    version: async () => protocol,
    streams: 1,
    updateKeys: null,
    leave: () => void request.destroy(),
  };
}

/** On the page of the server, which came over TLS as well. @param {TestContext} t @param {Where} where @returns {Promise<RealClient>} */
async function openChromium(t, { port, target, version }) {
  const browser = await startBrowser(t, version === '1.2' ? ['--ssl-version-max=tls1.2'] : []);
  const context = await browser.newContext({ ignoreHTTPSErrors: true });
  const page = await context.newPage();
  const answer = await page.goto(`https://localhost:${port}/`);
  const details = await answer?.securityDetails();
  let [text, problem] = ['', ''];
  await page.exposeFunction('onData', (/** @type {string} */ data) => {
    text += `data: ${data}\n`;
  });
  await page.exposeFunction('onProblem', () => {
    problem += 'an error event; ';
  });
  await page.evaluate((url) => {
    const { onData, onProblem } = /** @type {any} */ (globalThis);
    const source = new EventSource(url);
    source.addEventListener('welcome', ({ data }) => onData(data));
    source.onmessage = ({ data }) => onData(data);
    source.onerror = () => onProblem();
    Object.assign(globalThis, { source });
  }, target);
  return {
    events: () => text,
    problem: () => problem,
    version: async () => (details?.protocol ?? '').replace(' ', 'v'),
    streams: 3, // the page has two of its own
    updateKeys: null,
    leave: () => void page.close().catch(() => {}),
  };
}
