/*
 * What most people would write with node:http. Takes the port and the ping interval (ms, 0 for none).
 */
import { createServer } from 'node:http';

const [port, intervalMs] = process.argv.slice(2).map(Number);
/** @type {Set<import('node:http').ServerResponse>} */
const streams = new Set();

createServer((request, response) => {
  if (request.url !== '/') return void response.writeHead(404).end();
  response.writeHead(200, { 'Content-Type': 'text/plain' });
  response.write('Welcome!');
  streams.add(response);
  response.on('close', () => streams.delete(response));
}).listen({ port, host: '127.0.0.1', backlog: 4096 });

const ping = () => {
  for (const response of streams) response.write('ping');
};
if (intervalMs > 0) setInterval(ping, intervalMs);
