/*
 * Limits the connections of a small node:http server, so that idle ones can't lock anybody out: when there are too many, the
 * one that has been idle the longest is closed.
 */

/** @typedef {import('node:net').Socket} Socket */
/** @typedef {import('node:http').IncomingMessage} IncomingMessage */
/** @typedef {import('node:http').ServerResponse} ServerResponse */

/**
 * @param {import('node:http').Server} server
 * @param {number} most connections; a new one is closed only if all others wait for an answer of ours
 */
export function limitConnections(server, most) {
  /** Each connection with its last request, if it has sent any. The one that has waited longest is first. @type {Map<Socket, Exchange | null>} */
  const crowd = new Map();
  server.on('connection', (socket) => {
    crowd.set(socket, null);
    socket.once('close', () => crowd.delete(socket));
    if (crowd.size > most) oldestIdle(crowd, socket).destroy();
  });
  server.on('request', (request, response) => {
    if (crowd.delete(request.socket)) crowd.set(request.socket, { request, response });
  });
}

/** @typedef {{ request: IncomingMessage, response: ServerResponse }} Exchange */

/** @param {Map<Socket, Exchange | null>} crowd @param {Socket} newest @returns {Socket} the newest if no other is idle */
function oldestIdle(crowd, newest) {
  for (const [socket, exchange] of crowd) if (!exchange || !isOurTurn(exchange)) return socket;
  return newest;
}

/** Whether the client has sent all of its request and can only wait. @param {Exchange} exchange */
function isOurTurn({ request, response }) {
  return request.complete && !response.writableEnded;
}
