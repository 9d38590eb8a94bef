/*
 * Keeps room for new connections in a server with few of them.
 */

/**
 * Once there are too many connections, the oldest that has not sent a complete request head gives way to the next one. So
 * connections that send nothing, or send slowly, can't lock anybody out.
 * @param {import('node:http').Server} server
 * @param {number} most connections without a request
 */
export function keepRoom(server, most) {
  /** Connections without a request, the oldest first. @type {Set<import('node:net').Socket>} */
  const silent = new Set();
  server.on('connection', (socket) => {
    const [oldest] = silent;
    if (silent.size >= most) oldest.destroy();
    silent.add(socket);
    socket.once('close', () => silent.delete(socket));
  });
  server.on('request', ({ socket }) => silent.delete(socket));
}
