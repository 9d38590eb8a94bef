/*
 * A chat with rooms: who is here, what was said before, and nothing lost when a connection is.
 *
 *     GET  /                         the page
 *     GET  /rooms/ROOM?name=NAME     a stream: messages, and the names of the people whenever they change
 *     POST /rooms/ROOM?name=NAME     says what is in the body
 */
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { Hold, Hub } from 'holdfast';

const { PORT = '3000', HOST = '127.0.0.1' } = process.env;
const PAGE = readFileSync(new URL('index.html', import.meta.url), 'utf8');

/** The room and the name of each stream. @type {Map<number, { room: string, name: string }>} */
const people = new Map();
const hold = new Hold({ onClose: leave }); // keeps the streams open
const hub = new Hub({ hold }); // gives the messages an order, and keeps them for those who come later
await hub.start();

/** @param {import('node:http').ServerResponse} response @param {string} room @param {string} name */
async function join(response, room, name) {
  const cursor = String(response.req.headers['last-event-id'] ?? 'earliest'); // what was missed, or everything
  const id = await hub.subscribe(response, { topics: room, cursor });
  people.set(id, { room, name });
  hold.subscribe(id, `people in ${room}`);
  tellWhoIsHere(room);
}

/** @param {number} id of a stream that has ended */
function leave(id) {
  const { room } = people.get(id) ?? {};
  people.delete(id);
  if (room) tellWhoIsHere(room);
}

/** This is true only now, so nobody has to get it later: it goes to a channel of the Hold, not through the hub. @param {string} room */
function tellWhoIsHere(room) {
  const names = [...people.values()].filter((person) => person.room === room).map(({ name }) => name);
  hold.publish(`people in ${room}`, { type: 'people', data: JSON.stringify([...new Set(names)].sort()) });
}

/** @param {import('node:http').ServerResponse} response */
function sendPage(response) {
  const nonce = randomUUID(); // only the page's own script and style count, whatever people write
  const policy = `default-src 'none'; connect-src 'self'; img-src data:; script-src 'nonce-${nonce}'; style-src 'nonce-${nonce}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;
  response.writeHead(200, { 'Content-Type': 'text/html; charset=utf-8', 'Content-Security-Policy': policy });
  response.end(PAGE.replaceAll('{nonce}', nonce));
}

/** @param {import('node:http').IncomingMessage} request @param {import('node:http').ServerResponse} response */
async function answer(request, response) {
  const { pathname, searchParams } = new URL(`http://localhost${request.url}`);
  const [, room] = /^\/rooms\/([\w-]{1,30})$/.exec(pathname) ?? [];
  const name = searchParams.get('name')?.trim().slice(0, 30);
  if (pathname === '/') return sendPage(response);
  if (!room || !name) return response.writeHead(404).end();
  if (request.method === 'GET') return join(response, room, name);
  if (!(Number(request.headers['content-length']) <= 4096)) return response.writeHead(413).end();
  const message = { name, text: await text(request), at: Date.now() };
  await hub.publish({ topic: room, data: JSON.stringify(message) });
  return response.writeHead(204).end();
}

const server = createServer((request, response) => {
  answer(request, response).catch(() => response.headersSent || response.writeHead(400).end());
});
server.listen(Number(PORT), HOST, () => console.log(`http://localhost:${PORT}/`));
process.once('SIGTERM', () => server.close() && hold.close(500));
