/*
 * A connection of a door (door.js), with our symbols on it.
 */

/** Its states; door.js draws them. */
export const NEW = 0;
export const ASKED = 1;
export const HELD = 2;
export const PASSED = 3;
export const ANSWERED = 4;
export const IDLE = 5;

/**
 * How long a client may take to read an answer and close before it is cut. Closing at once, with bytes from the client
 * still unread, would reset the connection and lose the answer.
 */
export const LINGER_MS = 1000;

export const kState = Symbol('state');
export const kVisit = Symbol('visit');
export const kStream = Symbol('stream');
export const kMore = Symbol('more');
export const kError = Symbol('error');

/**
 * Its state, the request waiting for a decision, its stream, and what the client sent in the meantime: more requests, and
 * perhaps an error of the parser after them.
 * @typedef {import('node:net').Socket & { [kState]?: number, [kVisit]?: Visit, [kStream]?: import('./heldstream.js').HeldStream, [kMore]?: import('./passing.js').Call[], [kError]?: Error }} DoorSocket
 */

/**
 * A request that the policy is asked about.
 * @typedef {object} Visit
 * @property {number} id of the stream that it may become
 * @property {import('node:http').IncomingMessage} request
 * @property {DoorSocket} socket
 * @property {import('./passing.js').Call} call
 */

/** @param {import('node:net').Socket} socket */
export function destroySocket(socket) {
  socket.destroy();
}

/** Gives a client time to read what was written to it. @param {DoorSocket} socket */
export function destroySoon(socket) {
  setTimeout(destroySocket, LINGER_MS, socket).unref();
}
