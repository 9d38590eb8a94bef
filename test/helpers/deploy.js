/*
 * The configurations of docs/deploy, with the addresses and files of a test instead of theirs.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Agent, fetch as fetchFrom } from 'undici';
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
export function makeCertificate(t) {
  const folder = temporaryFolder(t);
  const [cert, key, both] = ['server.crt', 'server.key', 'server.pem'].map((name) => join(folder, name));
  const words = [
    'req',
    '-x509',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:prime256v1',
    '-nodes',
    '-days',
    '2',
  ];
  const subject = [
    '-subj',
    `/CN=${NAME}`,
    '-addext',
    `subjectAltName=DNS:${NAME},DNS:localhost,IP:127.0.0.1`,
  ];
  const made = spawnSync('openssl', [...words, ...subject, '-keyout', key, '-out', cert], {
    encoding: 'utf8',
  });
  assert.equal(made.status, 0, made.stderr);
  writeFileSync(both, readFileSync(cert, 'utf8') + readFileSync(key, 'utf8'));
  return { folder, cert, key, both };
}

/** @param {string} program @returns {string | false} why it can't be used; false if it can */
export function missing(program) {
  return spawnSync(program, ['-v']).error ? `${program} is not installed` : false;
}

/** @typedef {{ port: number, certificate: ReturnType<typeof makeCertificate>, nodes: { port: number, readyPort: number }[] }} Behind */

const NODES = ['10.0.0.11', '10.0.0.12', '10.0.0.13'];

/** @type {Record<string, (t: TestContext, behind: Behind) => ReturnType<typeof run>>} starts a proxy, by its name */
export const PROXIES = {
  nginx(t, { port, certificate: { folder, cert, key }, nodes }) {
    const text = configurationOf('nginx.conf', [
      ['/run/nginx.pid', join(folder, 'nginx.pid')],
      ['/var/log/nginx/error.log', 'stderr'],
      ['worker_connections 500000', 'worker_connections 1000'],
      ['worker_processes auto', 'worker_processes 1'],
      ['listen 443', `listen 127.0.0.1:${port}`],
      ['/etc/ssl/hub.example.com.crt', cert],
      ['/etc/ssl/hub.example.com.key', key],
      ...NODES.map(
        (address, i) =>
          /** @type {[string, string]} */ ([
            `    server ${address}:8888 max_fails=1 fail_timeout=5s;\n`,
            nodes[i] ? `    server 127.0.0.1:${nodes[i].port} max_fails=1 fail_timeout=5s;\n` : '',
          ]),
      ),
    ]);
    const config = join(folder, 'nginx.conf');
    writeFileSync(config, text);
    return run(t, 'nginx', [
      '-p',
      folder,
      '-c',
      config,
      '-e',
      'stderr',
      '-g',
      'daemon off; master_process off;',
    ]);
  },

  haproxy(t, { port, certificate: { folder, both }, nodes }) {
    const text = configurationOf('haproxy.cfg', [
      ['maxconn 200000', 'maxconn 1000'],
      [':443 ', `127.0.0.1:${port} `],
      ['/etc/haproxy/hub.example.com.pem', both],
      ...NODES.map(
        (address, i) =>
          /** @type {[string, string]} */ ([
            `  server node${i + 1} ${address}:8888 check port 8891\n`,
            nodes[i]
              ? `  server node${i + 1} 127.0.0.1:${nodes[i].port} check port ${nodes[i].readyPort}\n`
              : '',
          ]),
      ),
    ]);
    const config = join(folder, 'haproxy.cfg');
    writeFileSync(config, text);
    return run(t, 'haproxy', ['-db', '-f', config]);
  },
};

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
