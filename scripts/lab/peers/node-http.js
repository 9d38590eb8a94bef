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
// The cipher that all others choose. Node would prefer ChaCha20, for clients without AES-256.
const ciphers = 'TLS_AES_128_GCM_SHA256';
const server = cert
  ? createTlsServer({ cert, key, minVersion: 'TLSv1.3', ciphers }, answer)
  : createServer(answer);
server.listen({ port, host: '127.0.0.1', backlog: 4096 });

const ping = () => {
  for (const response of streams) response.write('ping');
};
if (intervalMs > 0) setInterval(ping, intervalMs);
