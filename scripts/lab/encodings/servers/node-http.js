/*
 * Polls and plain answers of node:http, in a few lines.
 */
import { createServer } from 'node:http';
import { ANSWER, bodyOf, HOST, KEEP_ALIVE_MS, ready, startOf, TEXT } from './common.js';

const { port } = startOf();
/** What waits for a message, with its timer. @type {Map<import('node:http').ServerResponse, NodeJS.Timeout>} */
const waiting = new Map();
const JSON_HEADERS = { 'Cache-Control': 'no-store', 'Content-Type': 'application/json' };

/** @param {URL} url @param {import('node:http').ServerResponse} response */
function hold({ searchParams }, response) {
  const end = () => {
    waiting.delete(response);
    response.writeHead(204).end();
  };
  waiting.set(response, setTimeout(end, Number(searchParams.get('wait')) * 1000));
  response.on('close', () => {
    clearTimeout(waiting.get(response));
    waiting.delete(response);
  });
}

/** @param {string} text */
function publish(text) {
  const body = `${JSON.stringify({ messages: [{ data: text }] })}\n`;
  for (const [response, timer] of waiting) {
    clearTimeout(timer);
    response.writeHead(200, { ...JSON_HEADERS, 'Content-Length': Buffer.byteLength(body) }).end(body);
  }
  waiting.clear();
}

const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, async (request, response) => {
  const url = new URL(request.url ?? '', 'http://a');
  if (request.method === 'POST') {
    publish(await bodyOf(request));
    return void response.writeHead(202).end();
  }
  if (url.pathname === '/') return hold(url, response);
  if (url.pathname !== '/bench') return void response.writeHead(404).end();
  response.removeHeader('Connection'); // no other server sends it
  response.writeHead(200, { ...TEXT, 'Content-Length': ANSWER.length }).end(ANSWER);
});
server.listen({ port, host: HOST, backlog: 4096 }, ready);
