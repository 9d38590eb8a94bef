/*
 * A way to a TCP server that can be interrupted: cut, or silent like a network that loses everything.
 */
import { once } from 'node:events';
import { connect, createServer } from 'node:net';

/**
 * @param {import('./server.js').Scope} t it is closed after the test
 * @param {number} target port on this machine
 */
export async function startGate(t, target) {
  /** @type {Set<import('node:net').Socket>} */
  const sockets = new Set();
  let isOpen = true;
  const server = createServer((client) => {
    const onward = connect(target, '127.0.0.1');
    for (const [from, to] of [
      [client, onward],
      [onward, client],
    ]) {
      sockets.add(from);
      from.on('error', () => {});
      from.on('data', (data) => void to.write(data));
      from.on('close', () => {
        sockets.delete(from);
        to.destroy();
      });
      if (!isOpen) from.pause();
    }
  });
  const listening = async (/** @type {number} */ port) => {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    return /** @type {import('node:net').AddressInfo} */ (server.address()).port;
  };
  const port = await listening(0);
  const end = () => {
    if (server.listening) server.close();
    for (const socket of sockets) socket.destroy();
  };
  t.after(end);
  return {
    port,
    url: `nats://127.0.0.1:${port}`,
    /** Connections break, and no new ones can be made. */
    cut: end,
    /** After `cut`. */
    restore: () => listening(port),
    /** Nothing passes any more, and nobody is told. */
    silence: () => {
      isOpen = false;
      for (const socket of sockets) socket.pause();
    },
    /** After `silence`: what was on its way arrives. */
    resume: () => {
      isOpen = true;
      for (const socket of sockets) socket.resume();
    },
  };
}
