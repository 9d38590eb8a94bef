/*
 * The folder in which the drones of this machine register, one file each: <pid>.json. Only its user has access: the
 * files contain tokens, and a forged file would direct commands to somebody else's process.
 */
import {
  closeSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
} from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join, resolve } from 'node:path';
import { codeOf, HoldfastError, messageOf } from '../../lib/errors.js';
import { makeFolder } from '../../lib/folder.js';

const MOST_LOG_BYTES = 65_536;

/** What a file contains, and its path. @typedef {{ pid: number, url: string, token: string, file: string }} Entry */

/** @returns {string} where drones register unless another folder is given */
export function defaultFolder() {
  return join(tmpdir(), `holdfast-fleet-${userInfo().uid}`);
}

/**
 * Creates the folder if it doesn't exist.
 * @param {string} given @returns {string} its full path
 * @throws {HoldfastError} BAD_FOLDER if others could write to it
 */
export function openFolder(given) {
  const folder = resolve(given);
  try {
    makeFolder(folder, 0o700);
  } catch (error) {
    throw new HoldfastError('BAD_FOLDER', `can't create --fleet-dir ${folder}: ${messageOf(error)}`);
  }
  const { uid } = userInfo();
  const found = lstatSync(folder);
  if (!found.isDirectory() || (uid >= 0 && found.uid !== uid) || (found.mode & 0o022) !== 0) {
    const line = `others can write to --fleet-dir ${folder}: give another folder, or run chmod 700 on it`;
    throw new HoldfastError('BAD_FOLDER', line);
  }
  return folder;
}

/** @param {string} folder @returns {Entry[]} by ascending pid */
export function readFolder(folder) {
  return readdirSync(folder)
    .filter((name) => /^\d+\.json$/.test(name))
    .map((name) => readEntry(join(folder, name)))
    .filter((entry) => entry !== null)
    .sort((one, other) => one.pid - other.pid);
}

/** @param {string} file @returns {Entry | null} */
export function readEntry(file) {
  try {
    const { pid, url, token } = JSON.parse(readFileSync(file, 'utf8'));
    return Number.isInteger(pid) && URL.canParse(url) ? { pid, url, token: String(token ?? ''), file } : null;
  } catch {
    return null; // it was removed just now, or isn't one of ours
  }
}

/**
 * Creates a folder for one run inside the folder of all drones, and removes the folders of runs that were killed.
 * @param {string} folder @returns {string}
 */
export function openRunFolder(folder) {
  for (const name of readdirSync(folder)) {
    const found = /^run-(\d+)$/.exec(name);
    if (found && !isAlive(Number(found[1]))) rmSync(join(folder, name), { recursive: true, force: true });
  }
  const own = join(folder, `run-${process.pid}`);
  mkdirSync(own, { recursive: true, mode: 0o700 });
  return own;
}

/** @param {number} pid */
export function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) === 'EPERM';
  }
}

/**
 * An unlinked file for the stderr of a drone: unlike a pipe it needs no reader, and nothing of it remains.
 * @param {string} folder
 * @returns {{ fd: number, lastLine: () => string, close: () => void }}
 */
export function openLog(folder) {
  const path = join(folder, `log-${process.pid}-${process.hrtime.bigint()}`);
  const fd = openSync(path, 'wx+', 0o600);
  rmSync(path);
  return {
    fd,
    lastLine: () => {
      const buffer = Buffer.alloc(MOST_LOG_BYTES);
      const size = readSync(fd, buffer, 0, buffer.length, 0);
      return buffer.toString('utf8', 0, size).trim().split('\n').at(-1) ?? '';
    },
    close: () => closeSync(fd),
  };
}
