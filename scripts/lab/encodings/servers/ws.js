/*
 * WebSockets with the package ws on node:http, as its documentation shows.
 */
import { createServer } from 'node:http';
import { WebSocketServer } from 'ws';
import { bodyOf, HOST, keepAlive, ready, startOf, WELCOME } from './common.js';

const { port, intervalMs } = startOf();
const server = createServer(async (request, response) => {
  if (request.method !== 'POST') return void response.writeHead(404).end();
  const text = await bodyOf(request);
  for (const client of sockets.clients) client.send(text);
  response.writeHead(202).end();
});
const sockets = new WebSocketServer({ server });
sockets.on('connection', (socket) => {
  socket.on('error', () => {}); // it may be reset
  socket.send(WELCOME);
});
keepAlive(sockets.clients, intervalMs);
server.listen({ port, host: HOST, backlog: 4096 }, ready);
