/*
 * The control socket, at which another server takes over from this one. Only the same user can open it (0600).
 *
 * It is made under a name of its own and then renamed, so that it never has other permissions, and so that the socket of the next
 * server replaces it without a moment in which there is none.
 */
import { chmodSync, lstatSync, renameSync, rmSync, statSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { MOST_SOCKET_BYTES } from '../../lib/config.js';
import { codeOf, HoldfastError, messageOf } from '../../lib/errors.js';
import { makeFolder } from '../../lib/folder.js';
import { Lines } from './lines.js';

/** How long the server at the path may take to accept the connection. */
const CONNECT_MS = 5000;

export class Control {
  /** @param {import('node:net').Server} server @param {string} path */
  constructor(server, path) {
    this.server = server;
    this.path = path;
    this.inode = statSync(path).ino;
  }

  /** Removes the socket, unless it is the next server's already. */
  close() {
    this.server.close();
    try {
      if (statSync(this.path).ino === this.inode) rmSync(this.path);
    } catch {
      // somebody has removed it
    }
  }
}

/**
 * @param {string} path of at most 107 bytes
 * @param {(lines: Lines) => void} onLines gets every connection
 * @returns {Promise<Control>}
 * @throws {HoldfastError} CONTROL: another server answers there, or it can't be made
 */
export async function openControl(path, onLines) {
  const lines = await connectTo(path).catch(() => null);
  if (lines) {
    lines.destroy();
    throw new HoldfastError(
      'CONTROL',
      `another server answers at ${path}: use --takeover or another --control`,
    );
  }
  try {
    makeFolder(dirname(path), 0o700);
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (found && !found.isSocket()) throw new Error('there is something else, and no socket');
    return await listenAt(path, onLines);
  } catch (error) {
    throw new HoldfastError(
      'CONTROL',
      `can't listen at --control ${path}: ${messageOf(error)}; use another path`,
    );
  }
}

/** @param {string} path @param {(lines: Lines) => void} onLines @returns {Promise<Control>} */
function listenAt(path, onLines) {
  const server = createServer((socket) => onLines(new Lines(socket)));
  const own = ownNameOf(path);
  rmSync(own, { force: true });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    const before = process.umask(0o177);
    try {
      server.listen(own, () => {
        try {
          chmodSync(own, 0o600);
          if (own !== path) renameSync(own, path);
          server.on('error', () => {}); // accepting failed: the other side tries again
          resolve(new Control(server, path));
        } catch (error) {
          server.close();
          reject(error);
        }
      });
    } finally {
      process.umask(before);
    }
  });
}

/** @param {string} path @returns {string} a name in the same folder; the same one if another would be too long */
function ownNameOf(path) {
  const own = join(dirname(path), `.${process.pid.toString(36)}`);
  return Buffer.byteLength(own) <= MOST_SOCKET_BYTES ? own : path;
}

/**
 * @param {string} path of a control socket
 * @returns {Promise<Lines>}
 * @throws {HoldfastError} CONTROL if nobody answers
 */
export function connectTo(path) {
  return new Promise((resolve, reject) => {
    const socket = connect({ path });
    const fail = (/** @type {string} */ why) => {
      socket.destroy();
      reject(
        new HoldfastError(
          'CONTROL',
          `no server answers at ${path} (${why}): start one without --takeover, or give its --control`,
        ),
      );
    };
    const timer = setTimeout(() => fail(`silent for ${CONNECT_MS} ms`), CONNECT_MS);
    socket.once('error', (error) => {
      clearTimeout(timer);
      fail(codeOf(error) || error.message);
    });
    socket.once('connect', () => {
      clearTimeout(timer);
      socket.removeAllListeners('error');
      resolve(new Lines(socket));
    });
  });
}
