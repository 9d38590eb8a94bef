/*
 * A Unix socket at a path, where a process offers its streams: only for its own user, and never in place of a live one.
 */
import { chmod, lstat, mkdtemp, rename, rmdir, unlink } from 'node:fs/promises';
import { connect } from 'node:net';
import { dirname, join } from 'node:path';
import { codeOf, HoldfastError, messageOf } from '../lib/errors.js';
import { shown } from '../lib/shown.js';
import { badArgument } from './checks.js';
import { failed } from './link.js';

/** What the kernel has room for (unix(7)). */
const MOST_PATH_BYTES = 107;
/** While it is created, the socket has this name in the folder; mkdtemp adds 6 characters. */
const [PREFIX, NAME] = ['.holdfast-', 's'];
/** Nobody listens there. */
const NOBODY = ['ENOENT', 'ECONNREFUSED'];

/** @param {string} path @throws {HoldfastError} BAD_ARGUMENT */
export function checkPath(path) {
  if (typeof path !== 'string' || path === '' || path.includes('\0'))
    throw badArgument(`the path of a socket must be a string that is not empty, not ${shown(path)}`);
  const longest = Math.max(
    Buffer.byteLength(path),
    Buffer.byteLength(`${join(dirname(path), PREFIX)}000000/s`),
  );
  if (longest > MOST_PATH_BYTES)
    throw badArgument(
      `the path of a socket, and of a temporary one in its folder, can have at most ${MOST_PATH_BYTES} bytes, not ${longest}: use a folder with a shorter path`,
    );
}

/**
 * @param {string} path
 * @returns {Promise<import('node:net').Socket | null>} null if nobody listens there
 * @throws {HoldfastError} HANDOVER if the path can't be tried
 */
export function connectTo(path) {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    socket.once('connect', () => resolve(socket.off('error', onError)));
    socket.once('error', onError);
    /** @param {Error} error */
    function onError(error) {
      if (NOBODY.includes(codeOf(error))) resolve(null);
      else reject(failed(`can't connect to ${path}: ${messageOf(error)}`));
    }
  });
}

/**
 * Lets a server listen at a path. Replaces a socket there on which nobody listens.
 * @param {import('node:net').Server} server @param {string} path
 * @returns {Promise<() => Promise<void>>} removes the socket
 * @throws {HoldfastError} BUSY if another process listens there, HANDOVER
 */
export async function listenAt(server, path) {
  await checkFree(path);
  try {
    return await openAt(server, path);
  } catch (error) {
    server.close();
    throw failed(`can't listen at ${path}: ${messageOf(error)}`);
  }
}

/** @param {string} path */
async function checkFree(path) {
  const other = await connectTo(path);
  other?.destroy();
  if (other)
    throw new HoldfastError(
      'BUSY',
      `another process offers its streams at ${path}: take them over, or use another path`,
    );
  const found = await lstat(path).catch(() => null);
  if (found && !found.isSocket()) throw failed(`${path} is not a socket: remove it, or use another path`);
}

/**
 * In a folder that only this user can enter, until the mode is right: nobody else can connect in between.
 * @param {import('node:net').Server} server @param {string} path
 */
async function openAt(server, path) {
  const folder = await mkdtemp(join(dirname(path), PREFIX));
  const own = join(folder, NAME);
  try {
    await listen(server, own);
    await chmod(own, 0o600);
    await rename(own, path);
  } finally {
    await unlink(own).catch(() => {});
    await rmdir(folder);
  }
  const { ino } = await lstat(path);
  return () => removeOwn(path, ino);
}

/** @param {import('node:net').Server} server @param {string} path @returns {Promise<void>} */
function listen(server, path) {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, () => resolve(void server.off('error', reject)));
  });
}

/** Another process may have put its own there. @param {string} path @param {number} ino */
async function removeOwn(path, ino) {
  const found = await lstat(path).catch(() => null);
  if (found?.ino === ino) await unlink(path).catch(() => {});
}
