/*
 * The folder in which drones of this machine say how they are reached, a file each: <pid>.json. For their user
 * alone, as the files hold tokens and whoever writes them says who is steered.
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

const MOST_SAID_BYTES = 65_536;

/** @returns {string} where drones are registered unless another folder is given */
export function defaultFolder() {
  return join(tmpdir(), `holdfast-fleet-${userInfo().uid}`);
}

/**
 * Makes the folder where there is none.
 * @param {string} given @returns {string} its whole path
 * @throws {HoldfastError} BAD_FOLDER where others could write into it
 */
export function openFolder(given) {
  const folder = resolve(given);
  try {
    makeFolder(folder, 0o700);
  } catch (error) {
    throw new HoldfastError('BAD_FOLDER', `--fleet-dir ${folder} can't be made: ${messageOf(error)}`);
  }
  const { uid } = userInfo();
  const found = lstatSync(folder);
  if (!found.isDirectory() || (uid >= 0 && found.uid !== uid) || (found.mode & 0o022) !== 0) {
    const line = `--fleet-dir ${folder} is not a folder that you alone can write to: give another, or chmod 700 it`;
    throw new HoldfastError('BAD_FOLDER', line);
  }
  return folder;
}

/**
 * @param {string} folder
 * @returns {{ pid: number, url: string, token: string, file: string }[]} in the order of their pids
 */
export function readFolder(folder) {
  return readdirSync(folder)
    .filter((name) => /^\d+\.json$/.test(name))
    .map((name) => readEntry(join(folder, name)))
    .filter((entry) => entry !== null)
    .sort((one, other) => one.pid - other.pid);
}

/** @param {string} file @returns {{ pid: number, url: string, token: string, file: string } | null} */
function readEntry(file) {
  try {
    const { pid, url, token } = JSON.parse(readFileSync(file, 'utf8'));
    return Number.isInteger(pid) && URL.canParse(url) ? { pid, url, token: String(token ?? ''), file } : null;
  } catch {
    return null; // it went meanwhile, or was never one of ours
  }
}

/**
 * A folder of a run, below that of all. Those of runs that were killed go.
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
 * A file without a name, for what a drone says before it ends: it needs no reader, and nothing of it stays.
 * @param {string} folder
 * @returns {{ fd: number, lastLine: () => string, close: () => void }}
 */
export function openWords(folder) {
  const path = join(folder, `words-${process.pid}-${process.hrtime.bigint()}`);
  const fd = openSync(path, 'wx+', 0o600);
  rmSync(path);
  return {
    fd,
    lastLine: () => {
      const buffer = Buffer.alloc(MOST_SAID_BYTES);
      const size = readSync(fd, buffer, 0, buffer.length, 0);
      return buffer.toString('utf8', 0, size).trim().split('\n').at(-1) ?? '';
    },
    close: () => closeSync(fd),
  };
}
