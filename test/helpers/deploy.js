/*
 * The configurations of docs/deploy, with the addresses and files of a test instead of theirs.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Agent, fetch as fetchFrom } from 'undici';
import { makeCertificate } from './certificates.js';
import { run, temporaryFolder } from './server.js';
import { until } from './until.js';

/** @typedef {import('node:test').TestContext} TestContext */

const FOLDER = new URL('../../docs/deploy/', import.meta.url);
export const NAME = 'hub.example.com';

/** @param {string} name of a file in docs/deploy @param {[string, string][]} changes each must find its text @returns {string} */
export function configurationOf(name, changes) {
  return changes.reduce(
    (text, [from, to]) => {
      assert.ok(text.includes(from), `${name} contains ${from}`);
      return text.replaceAll(from, to);
    },
    readFileSync(new URL(name, FOLDER), 'utf8'),
  );
}

/** @param {TestContext} t @returns {{ folder: string, cert: string, key: string, both: string }} files of a certificate for NAME and 127.0.0.1 */
export function makeNodeCertificate(t) {
  const folder = temporaryFolder(t);
  const { cert, key, read } = makeCertificate(t, { names: [NAME], folder });
  const both = join(folder, 'both.pem');
  writeFileSync(both, Object.values(read()).join(''));
  return { folder, cert, key, both };
}

/** @param {string} program @returns {string | false} why it can't be used; false if it can */
export function missing(program) {
  return spawnSync(program, ['-v']).error ? `${program} is not installed` : false;
}

/** @typedef {{ port: number, certificate: ReturnType<typeof makeNodeCertificate>, nodes: { port: number, readyPort: number }[] }} Behind */

const NODES = ['10.0.0.11', '10.0.0.12', '10.0.0.13'];

/**
 * @typedef {object} Proxy
 * @property {string} program
 * @property {boolean} isTls whether it speaks TLS to the nodes too
 * @property {(t: TestContext, behind: Behind) => ReturnType<typeof run>} start
 */

/** By what they are. @type {Record<string, Proxy>} */
export const PROXIES = {
  nginx: { program: 'nginx', isTls: false, start: (t, behind) => startNginx(t, 'nginx.conf', behind) },
  haproxy: {
    program: 'haproxy',
    isTls: false,
    start: (t, behind) => startHaproxy(t, 'haproxy.cfg', behind),
  },
  'nginx with TLS to nodes': {
    program: 'nginx',
    isTls: true,
    start: (t, behind) =>
      startNginx(t, 'tls.nginx.conf', behind, [['/etc/ssl/holdfast-ca.pem', behind.certificate.cert]]),
  },
  'haproxy with TLS to nodes': {
    program: 'haproxy',
    isTls: true,
    start: (t, behind) =>
      startHaproxy(t, 'tls.haproxy.cfg', behind, [['/etc/haproxy/holdfast-ca.pem', behind.certificate.cert]]),
  },
};

/** @param {(address: string, i: number) => string} lineOf @param {(node: Behind['nodes'][0], i: number) => string} ownOf @param {Behind['nodes']} nodes */
function nodeChanges(lineOf, ownOf, nodes) {
  return NODES.map(
    (address, i) =>
      /** @type {[string, string]} */ ([lineOf(address, i), nodes[i] ? ownOf(nodes[i], i) : '']),
  );
}

/** @param {TestContext} t @param {string} name of the file @param {Behind} behind @param {[string, string][]} [more] changes */
function startNginx(t, name, { port, certificate: { folder, cert, key }, nodes }, more = []) {
  const line = (/** @type {string} */ address) => `    server ${address} max_fails=1 fail_timeout=5s;\n`;
  const text = configurationOf(name, [
    ['/run/nginx.pid', join(folder, 'nginx.pid')],
    ['/var/log/nginx/error.log', 'stderr'],
    ['worker_connections 500000', 'worker_connections 1000'],
    ['worker_processes auto', 'worker_processes 1'],
    ['listen 443 ssl http2', `listen 127.0.0.1:${port} ssl http2`],
    ['/etc/ssl/hub.example.com.crt', cert],
    ['/etc/ssl/hub.example.com.key', key],
    ...more,
    ...nodeChanges(
      (address) => line(`${address}:8888`),
      (node) => line(`127.0.0.1:${node.port}`),
      nodes,
    ),
  ]);
  const config = join(folder, 'nginx.conf');
  writeFileSync(config, text);
  const words = ['-p', folder, '-c', config, '-e', 'stderr', '-g', 'daemon off; master_process off;'];
  return run(t, 'nginx', words);
}

/** @param {TestContext} t @param {string} name of the file @param {Behind} behind @param {[string, string][]} [more] changes */
function startHaproxy(t, name, { port, certificate: { folder, both }, nodes }, more = []) {
  const line = (/** @type {number} */ i, /** @type {string} */ address, /** @type {number} */ readyPort) =>
    `  server node${i + 1} ${address} check port ${readyPort}\n`;
  const text = configurationOf(name, [
    ['maxconn 200000', 'maxconn 1000'],
    [':443 ', `127.0.0.1:${port} `],
    ['/etc/haproxy/hub.example.com.pem', both],
    ...more,
    ...nodeChanges(
      (address, i) => line(i, `${address}:8888`, 8891),
      (node, i) => line(i, `127.0.0.1:${node.port}`, node.readyPort),
      nodes,
    ),
  ]);
  const config = join(folder, 'haproxy.cfg');
  writeFileSync(config, text);
  return run(t, 'haproxy', ['-db', '-f', config]);
}

/** Trusts the certificates of tests. @param {TestContext} t @returns {(url: string | URL, init?: any) => Promise<any>} */
export function fetchTrusting(t) {
  const dispatcher = new Agent({ connect: { rejectUnauthorized: false }, bodyTimeout: 0 });
  t.after(() => dispatcher.destroy());
  return (url, init) => fetchFrom(url, { ...init, dispatcher });
}

/** @param {ReturnType<typeof run>} proxy @param {() => Promise<unknown>} ask must not fail once it listens */
export async function untilListens({ child, output }, ask) {
  await until(
    async () => {
      assert.equal(child.exitCode, null, output.stderr);
      return ask().then(
        () => true,
        () => false,
      );
    },
    () => `it listens: ${output.stderr}`,
  );
}
