/*
 * A TCP proxy that can be cut: connections through it are lost, and no new ones come about until it is mended.
 */
import { connect, createServer } from 'node:net';

/**
 * @param {import('./server.js').Scope} t it is closed after the test
 * @param {number} target a port on this machine
 * @returns {Promise<{ port: number, url: string, cut: () => void, mend: () => void }>}
 */
export async function startWire(t, target) {
  /** @type {Set<import('node:net').Socket>} */
  const sockets = new Set();
  let isCut = false;
  const cut = () => {
    isCut = true;
    for (const socket of sockets) socket.destroy();
  };
  const server = createServer((near) => {
    if (isCut) return void near.destroy();
    const far = connect(target, '127.0.0.1');
    for (const [from, to] of [
      [near, far],
      [far, near],
    ]) {
      sockets.add(from);
      from.on('error', () => {});
      from.on('close', () => {
        sockets.delete(from);
        to.destroy();
      });
      from.pipe(to);
    }
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(null)));
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  t.after(() => {
    cut();
    server.close();
  });
  return {
    port,
    url: `nats://127.0.0.1:${port}`,
    cut,
    mend: () => {
      isCut = false;
    },
  };
}
