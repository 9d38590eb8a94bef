/*
 * A backup of what `apply` changes, on disk until `revert` has restored it: values of sysctls, and files byte for byte. It is
 * written before anything changes, so that an interrupted apply can be reverted, too. A second apply adds to it and never
 * replaces what the first one found.
 */
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { codeOf, HoldfastError, messageOf } from '../../lib/errors.js';

export const STATE_FILE = '/var/lib/holdfast/tune.json';
const VERSION = 1;

/**
 * @typedef {object} Backup
 * @property {number} version of this format
 * @property {Record<string, string>} sysctls their exact text
 * @property {Record<string, SavedFile | null>} files null for a file that did not exist
 * @property {string[]} folders that apply creates, outermost first
 *
 * @typedef {{ base64: string, mode: number, uid: number, gid: number } | { target: string }} SavedFile a file, or a
 *   symbolic link
 */

/** @param {string} root @returns {Backup | null} null if nothing was applied */
export function readBackup(root) {
  const path = join(root, STATE_FILE);
  if (!existsSync(path)) return null;
  try {
    const backup = JSON.parse(readFileSync(path, 'utf8'));
    if (backup.version === VERSION) return backup;
    throw new Error(`its version ${backup.version} is from another Holdfast`);
  } catch (error) {
    throw new HoldfastError('BAD_STATE', `can't use ${path}: ${messageOf(error)}; nothing was changed`);
  }
}

/**
 * Adds the current state to a backup, as far as it is not in it yet.
 * @param {string} root
 * @param {Backup | null} backup
 * @param {Record<string, string>} sysctls
 * @param {string[]} files
 * @returns {Backup}
 */
export function addToBackup(root, backup, sysctls, files) {
  const folders = [STATE_FILE, ...files].flatMap((file) => missingFolders(root, dirname(file)));
  return {
    version: VERSION,
    sysctls: { ...sysctls, ...backup?.sysctls },
    files: { ...Object.fromEntries(files.map((file) => [file, readFileAt(root, file)])), ...backup?.files },
    folders: [...new Set([...(backup?.folders ?? []), ...folders])],
  };
}

/**
 * @param {string} root @param {Backup} backup
 * @throws {HoldfastError} NO_BACKUP
 */
export function writeBackup(root, backup) {
  try {
    writeWhole(join(root, STATE_FILE), Buffer.from(`${JSON.stringify(backup, null, 2)}\n`), { mode: 0o600 });
  } catch (error) {
    const code = codeOf(error);
    const hint =
      code === 'EACCES' || code === 'EPERM' ? 'run it as root, or see --dry-run' : messageOf(error);
    throw new HoldfastError(
      'NO_BACKUP',
      `can't write ${join(root, STATE_FILE)} (${code}): ${hint}; nothing was changed`,
    );
  }
}

/** The end of a revert. @param {string} root @param {Backup} backup */
export function deleteBackup(root, backup) {
  rmSync(join(root, STATE_FILE));
  rmSync(newNameOf(join(root, STATE_FILE)), { force: true });
  for (const folder of backup.folders.toReversed()) removeEmpty(join(root, folder));
}

/** @param {string} path */
function removeEmpty(path) {
  try {
    rmdirSync(path);
  } catch (error) {
    if (!['ENOTEMPTY', 'EEXIST', 'ENOENT'].includes(codeOf(error))) throw error;
  }
}

/** @param {string} root @param {string} folder @returns {string[]} the folder and its parents, as far as they don't exist; outermost first */
function missingFolders(root, folder) {
  if (existsSync(join(root, folder))) return [];
  return [...missingFolders(root, dirname(folder)), folder];
}

/** @param {string} root @param {string} file @returns {SavedFile | null} */
function readFileAt(root, file) {
  const path = join(root, file);
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (!stat) return null;
  if (stat.isSymbolicLink()) return { target: readlinkSync(path) };
  if (!stat.isFile()) throw new HoldfastError('NO_FILE', `${path} is not a file: move it away`);
  const { mode, uid, gid } = stat;
  return { base64: readFileSync(path).toString('base64'), mode: mode & 0o7777, uid, gid };
}

/** Restores a file, or removes it if there was none. @param {string} root @param {string} file @param {SavedFile | null} saved */
export function restoreFile(root, file, saved) {
  const path = join(root, file);
  rmSync(newNameOf(path), { force: true });
  if (saved === null) return rmSync(path, { force: true });
  if ('target' in saved) {
    symlinkSync(saved.target, newNameOf(path));
    return renameSync(newNameOf(path), path);
  }
  writeWhole(path, Buffer.from(saved.base64, 'base64'), saved);
}

/** A name that sysctl.d and limits.d ignore. @param {string} path */
const newNameOf = (path) => `${path}.new`;

/**
 * Writes a file so that it exists completely or not at all, even after a power failure.
 * @param {string} path @param {Buffer} bytes @param {{ mode: number, uid?: number, gid?: number }} how
 */
export function writeWhole(path, bytes, { mode, uid, gid }) {
  mkdirSync(dirname(path), { recursive: true });
  rmSync(newNameOf(path), { force: true });
  const fd = openSync(newNameOf(path), 'wx', mode);
  writeFileSync(fd, bytes);
  fsyncSync(fd);
  closeSync(fd);
  if (uid !== undefined && gid !== undefined) chownSync(newNameOf(path), uid, gid);
  chmodSync(newNameOf(path), mode);
  renameSync(newNameOf(path), path);
  const folder = openSync(dirname(path), 'r');
  fsyncSync(folder);
  closeSync(folder);
}
