/*
 * Passes requests on to the application's server, just as Node would have emitted them there.
 */
import { ServerResponse } from 'node:http';

/** @typedef {import('node:http').Server} Server */

/**
 * A request as Node emitted it, so that it can be emitted again.
 * @typedef {object} Call
 * @property {string} event
 * @property {any[]} args
 * @property {ServerResponse | null} response null for CONNECT and upgrades, where Node gives only the socket
 */

/** Does with a request what Node does, but on another server. @param {Server} server @param {Call} call */
export function passOn(server, { event, args, response }) {
  if (server.listenerCount(event) > 0) server.emit(event, ...args);
  else if (event === 'checkContinue') {
    response?.writeContinue();
    server.emit('request', ...args);
  } else if (event === 'checkExpectation') response?.writeHead(417).end();
  else if (event === 'upgrade') server.emit('request', args[0], lastResponse(args[0], args[1]));
  else if (!response) args[1].destroy();
}

/**
 * @param {import('node:http').IncomingMessage} request
 * @param {import('node:net').Socket} socket without a response of Node's
 * @returns {ServerResponse}
 */
export function bareResponse(request, socket) {
  const response = new ServerResponse(request);
  response.assignSocket(socket);
  return response;
}

/**
 * @param {import('node:http').IncomingMessage} request @param {import('node:net').Socket} socket without a response of Node's
 * @returns {ServerResponse} after which the connection ends
 */
export function lastResponse(request, socket) {
  const response = bareResponse(request, socket);
  response.shouldKeepAlive = false;
  response.once('finish', () => socket.destroySoon());
  return response;
}
