/*
 * What most people would write with node:http. Takes the port, the ping interval (ms, 0 for none), and the files of a certificate and
 * its key for node:https.
 */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';

const [port, intervalMs] = process.argv.slice(2, 4).map(Number);
const [cert, key] = process.argv.slice(4).map((path) => readFileSync(path));
/** @type {Set<import('node:http').ServerResponse>} */
const streams = new Set();

/** @type {import('node:http').RequestListener} */
const answer = (request, response) => {
  if (request.url !== '/') return void response.writeHead(404).end();
  response.writeHead(200, { 'Content-Type': 'text/plain' });
  response.write('Welcome!');
  streams.add(response);
  response.on('close', () => streams.delete(response));
};
// Node would choose AES-256, or ChaCha20: others choose what clients prefer.
const options = {
  cert,
  key,
  minVersion: /** @type {const} */ ('TLSv1.3'),
  ciphers: 'TLS_AES_128_GCM_SHA256',
};
const server = cert ? createTlsServer(options, answer) : createServer(answer);
server.listen({ port, host: '127.0.0.1', backlog: 4096 });

const ping = () => {
  for (const response of streams) response.write('ping');
};
if (intervalMs > 0) setInterval(ping, intervalMs);
