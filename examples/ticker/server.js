/*
 * A price ticker: the server publishes prices that change, and every page shows them. Whoever comes gets the last price of
 * everything at once, because the hub keeps it.
 *
 *     GET /                      the page
 *     GET /.well-known/mercure   streams: the hub's own path
 */
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { Hold, Hub } from 'holdfast';

const { PORT = '3000', HOST = '127.0.0.1', TICK_MS = '500' } = process.env;
const PAGE = readFileSync(new URL('index.html', import.meta.url), 'utf8');
const TOPICS = 'https://ticker.example/prices/';
const MOST_POINTS = 40;

const hold = new Hold(); // keeps the streams open
const hub = new Hub({ hold, anonymous: true, cacheTopics: [`${TOPICS}:symbol`] }); // everybody may read
await hub.start();

const stocks = Object.entries({
  ANVL: 84.2,
  BOLT: 12.75,
  CORK: 231.4,
  FERN: 9.18,
  KITE: 57.6,
  OAR: 148.05,
}).map(([symbol, price]) => ({ symbol, price, open: price, points: [price] }));

/** A step of a random walk. @param {typeof stocks[number]} stock */
function move(stock) {
  stock.price = Math.max(0.01, stock.price * (1 + (Math.random() - 0.5) / 80));
  stock.points = [...stock.points, stock.price].slice(-MOST_POINTS);
}

/** All in one call: they are stored together, and delivered in this order. @param {typeof stocks} changed */
async function publish(changed) {
  const rounded = (/** @type {number} */ price) => Number(price.toFixed(2));
  await hub.publish(
    changed.map(({ symbol, price, open, points }) => ({
      topic: TOPICS + symbol,
      data: JSON.stringify({ symbol, price: rounded(price), open, points: points.map(rounded) }),
    })),
  );
}

function tick() {
  const changed = stocks.filter(() => Math.random() < 0.4);
  changed.forEach(move);
  if (changed.length > 0) publish(changed).catch((error) => console.error(error.message));
}

/** @param {import('node:http').ServerResponse} response */
function sendPage(response) {
  const nonce = randomUUID();
  const policy = `default-src 'none'; connect-src 'self'; img-src data:; script-src 'nonce-${nonce}'; style-src 'nonce-${nonce}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;
  response.writeHead(200, { 'Content-Type': 'text/html; charset=utf-8', 'Content-Security-Policy': policy });
  response.end(PAGE.replaceAll('{nonce}', nonce));
}

for (let i = 1; i < MOST_POINTS; i++) stocks.forEach(move);
await publish(stocks);
setInterval(tick, Number(TICK_MS)).unref(); // the server keeps the process alive

const server = createServer((request, response) => {
  hub.handler(request, response, () => {
    if (request.url === '/') sendPage(response);
    else response.writeHead(404).end();
  });
});
server.listen(Number(PORT), HOST, () => console.log(`http://localhost:${PORT}/`));
process.once('SIGTERM', () => server.close() && hold.close(500));
