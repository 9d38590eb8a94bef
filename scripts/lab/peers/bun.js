/*
 * Bun.serve with a stream per client. Takes the port, the ping interval (ms, 0 for none), and the files of a
 * certificate and its key for TLS.
 */
/** @type {any} */
const { Bun } = globalThis;
const [port, intervalMs] = process.argv.slice(2, 4).map(Number);
const [cert, key] = process.argv.slice(4);
/** @type {Set<ReadableStreamDefaultController>} */
const streams = new Set();

Bun.serve({
  port,
  hostname: '127.0.0.1',
  idleTimeout: 0,
  ...(cert ? { tls: { cert: Bun.file(cert), key: Bun.file(key) } } : {}),
  /** @param {Request} request */
  fetch(request) {
    if (new URL(request.url).pathname !== '/') return new Response('', { status: 404 });
    /** @type {ReadableStreamDefaultController} */
    let own;
    const body = new ReadableStream({
      start(controller) {
        own = controller;
        controller.enqueue('Welcome!');
        streams.add(controller);
      },
      cancel: () => void streams.delete(own),
    });
    return new Response(body, { headers: { 'Content-Type': 'text/plain' } });
  },
});

const ping = () => {
  for (const controller of streams) controller.enqueue('ping');
};
if (intervalMs > 0) setInterval(ping, intervalMs);
