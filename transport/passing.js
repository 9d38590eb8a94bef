/*
 * Requests that the door passes on to the application's server, as node would have given them to it.
 */
import { ServerResponse } from 'node:http';

/** @typedef {import('node:http').Server} Server */

/**
 * A request as node emitted it, to be emitted again.
 * @typedef {object} Call
 * @property {string} event
 * @property {any[]} args
 * @property {ServerResponse | null} response null where node gave the bare socket: CONNECT, and upgrades
 */

/** What node does with a request, done with another server. @param {Server} server @param {Call} call */
export function passOn(server, { event, args, response }) {
  if (server.listenerCount(event) > 0) server.emit(event, ...args);
  else if (event === 'checkContinue') {
    response?.writeContinue();
    server.emit('request', ...args);
  } else if (event === 'checkExpectation') response?.writeHead(417).end();
  else if (!response) args[1].destroy();
}

/**
 * A server with a listener for upgrades is given bare sockets by node, so it gets one only once the other server has one.
 * @param {Server} server
 * @param {Server | undefined} other
 * @param {(...args: any[]) => void} onUpgrade
 */
export function upgradeLike(server, other, onUpgrade) {
  const listen = () => server.listenerCount('upgrade') === 0 && server.on('upgrade', onUpgrade);
  if (other?.listenerCount('upgrade')) listen();
  other?.on('newListener', (event) => event === 'upgrade' && listen());
}

/**
 * @param {import('node:http').IncomingMessage} request
 * @param {import('node:net').Socket} socket that node gave up
 * @returns {ServerResponse}
 */
export function bareResponse(request, socket) {
  const response = new ServerResponse(request);
  response.assignSocket(socket);
  return response;
}
