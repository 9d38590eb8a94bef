/*
 * The LMDB environment of a store: its databases, and errors that say what to do.
 */
import { accessSync, constants, statfsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { HoldfastError, messageOf } from '../../lib/errors.js';
import { makeFolder } from '../../lib/folder.js';

/** Publications and the key of their cursors are nobody else's business. */
const FOLDER_MODE = 0o700;
const FILE_MODE = 0o600;

/** @typedef {import('lmdb').RootDatabase} Root */

/**
 * @typedef {object} Environment
 * @property {Root} root
 * @property {import('lmdb').Database<any, string>} meta by name: format, epoch, key, state, owner
 * @property {import('lmdb').Database<Buffer, number>} log blocks, by the sequence of their first publication
 * @property {import('lmdb').Database<Buffer, number>} kept blocks of one publication each, beyond retention, by sequence
 * @property {import('lmdb').Database<[bytes: number, topics: string[]], number>} pins publications that are the last of cached
 *   topics, by sequence
 * @property {import('lmdb').Database<import('../ids.js').Where, Buffer>} ids by publisher's id (keyOf)
 */

/** @param {string} folder @returns {string} */
export function fileOf(folder) {
  return join(folder, 'data.mdb');
}

/**
 * @param {string} folder created if there is none
 * @param {{ readOnly?: boolean }} [options] with `readOnly`, databases that were never written are missing
 * @returns {Promise<Environment>}
 * @throws {HoldfastError} STORE
 */
export async function openEnvironment(folder, { readOnly = false } = {}) {
  const { open } = await loadPackage();
  try {
    makeFolder(folder, FOLDER_MODE);
    const how = { noSubdir: false, overlappingSync: false, maxDbs: 8, permissionsMode: FILE_MODE, readOnly };
    const root = open({ path: folder, ...how });
    checkNames([...root.getKeys()].map(String), folder);
    return openDatabases(root);
  } catch (error) {
    throw storeError(error, folder, 'open');
  }
}

/**
 * Whether a store could be opened, as far as that is known while another process uses it.
 * @param {string} folder created if there is none
 * @throws {HoldfastError} STORE
 */
export async function checkFolder(folder) {
  await loadPackage();
  try {
    makeFolder(folder, FOLDER_MODE);
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    throw storeError(error, folder, 'open');
  }
}

/** @returns {Promise<typeof import('lmdb')>} */
async function loadPackage() {
  try {
    return await import('lmdb');
  } catch (error) {
    const line = `--store needs the package lmdb, which can't be loaded: install it (npm install lmdb@3.5.6), or leave out --store (${messageOf(error)})`;
    throw new HoldfastError('STORE', line);
  }
}

/** @param {Root} root @returns {Environment} */
function openDatabases(root) {
  return {
    root,
    meta: root.openDB({ name: 'meta', encoding: 'msgpack' }),
    log: root.openDB({ name: 'log', encoding: 'binary' }),
    kept: root.openDB({ name: 'kept', encoding: 'binary' }),
    pins: root.openDB({ name: 'pins', encoding: 'msgpack' }),
    ids: root.openDB({ name: 'ids', encoding: 'msgpack', keyEncoding: 'binary' }),
  };
}

/** @param {string[]} names of databases @param {string} folder */
function checkNames(names, folder) {
  if (names.length === 0 || names.includes('meta')) return;
  const line = `--store ${folder} has the LMDB database of another program: use another folder`;
  throw new HoldfastError('STORE', line);
}

/**
 * @param {unknown} error
 * @param {string} folder
 * @param {'open' | 'read' | 'write'} what failed
 * @returns {HoldfastError}
 */
export function storeError(error, folder, what) {
  if (error instanceof HoldfastError) return error;
  const full = what === 'write' && isFull(folder) ? ': the disk is full, free some space' : '';
  return new HoldfastError('STORE', `can't ${what} --store ${folder}${full || `: ${messageOf(error)}`}`);
}

/** @param {string} folder @returns {boolean} */
function isFull(folder) {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize < 1_048_576;
  } catch {
    return false;
  }
}

/** Notices if the file of a store is deleted, replaced or cut while it is open: LMDB would not. */
export class Watch {
  /** @param {string} folder */
  constructor(folder) {
    this.folder = folder;
    const { dev, ino, size } = statSync(fileOf(folder));
    this.dev = dev;
    this.ino = ino;
    this.size = size;
  }

  /** @throws {HoldfastError} STORE */
  check() {
    const now = statSync(fileOf(this.folder), { throwIfNoEntry: false });
    const same = now && now.dev === this.dev && now.ino === this.ino;
    if (!same) throw this.error('was deleted or replaced');
    if (now.size < this.size) throw this.error('was cut');
    this.size = now.size;
  }

  /** @param {string} how */
  error(how) {
    const line = `${fileOf(this.folder)} ${how} while the server was using it: restart the server`;
    return new HoldfastError('STORE', line);
  }
}
