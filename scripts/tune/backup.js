/*
 * What was there before `apply`, on disk until `revert` has put it back: values of sysctls, and files byte for byte.
 * It is written before anything changes, so that an apply that was cut short can be taken back too. A second apply
 * adds to it and never replaces what the first found.
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
 * @typedef {object} Kept
 * @property {number} version of this shape
 * @property {Record<string, string>} sysctls their text, exactly
 * @property {Record<string, KeptFile | null>} files null for one that was not there
 * @property {string[]} folders that apply makes, outermost first
 *
 * @typedef {{ base64: string, mode: number, uid: number, gid: number } | { target: string }} KeptFile a file, or a
 *   symbolic link
 */

/** @param {string} root @returns {Kept | null} null where nothing was applied */
export function readKept(root) {
  const path = join(root, STATE_FILE);
  if (!existsSync(path)) return null;
  try {
    const kept = JSON.parse(readFileSync(path, 'utf8'));
    if (kept.version === VERSION) return kept;
    throw new Error(`version ${kept.version} was written by another Holdfast`);
  } catch (error) {
    throw new HoldfastError('BAD_STATE', `${path} can't be used (${messageOf(error)}): nothing was changed`);
  }
}

/**
 * Adds what is there now to what was kept, where it is not in it yet.
 * @param {string} root
 * @param {Kept | null} kept
 * @param {Record<string, string>} sysctls
 * @param {string[]} files
 * @returns {Kept}
 */
export function addKept(root, kept, sysctls, files) {
  const folders = [STATE_FILE, ...files].flatMap((file) => missingFolders(root, dirname(file)));
  return {
    version: VERSION,
    sysctls: { ...sysctls, ...kept?.sysctls },
    files: { ...Object.fromEntries(files.map((file) => [file, readFileAt(root, file)])), ...kept?.files },
    folders: [...new Set([...(kept?.folders ?? []), ...folders])],
  };
}

/**
 * @param {string} root @param {Kept} kept
 * @throws {HoldfastError} NOT_KEPT
 */
export function writeKept(root, kept) {
  try {
    writeWhole(join(root, STATE_FILE), Buffer.from(`${JSON.stringify(kept, null, 2)}\n`), { mode: 0o600 });
  } catch (error) {
    const code = codeOf(error);
    const hint =
      code === 'EACCES' || code === 'EPERM' ? 'run it as root, or see --dry-run' : messageOf(error);
    throw new HoldfastError(
      'NOT_KEPT',
      `can't write ${join(root, STATE_FILE)} (${code}): ${hint}; nothing was changed`,
    );
  }
}

/** The end of a revert. @param {string} root @param {Kept} kept */
export function dropKept(root, kept) {
  rmSync(join(root, STATE_FILE));
  rmSync(newNameOf(join(root, STATE_FILE)), { force: true });
  for (const folder of kept.folders.toReversed()) removeEmpty(join(root, folder));
}

/** @param {string} path */
function removeEmpty(path) {
  try {
    rmdirSync(path);
  } catch (error) {
    if (!['ENOTEMPTY', 'EEXIST', 'ENOENT'].includes(codeOf(error))) throw error;
  }
}

/** @param {string} root @param {string} folder @returns {string[]} it and those above it that are not there, outermost first */
function missingFolders(root, folder) {
  if (existsSync(join(root, folder))) return [];
  return [...missingFolders(root, dirname(folder)), folder];
}

/** @param {string} root @param {string} file @returns {KeptFile | null} */
function readFileAt(root, file) {
  const path = join(root, file);
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (!stat) return null;
  if (stat.isSymbolicLink()) return { target: readlinkSync(path) };
  if (!stat.isFile()) throw new HoldfastError('NO_FILE', `${path} is no file: move it away`);
  const { mode, uid, gid } = stat;
  return { base64: readFileSync(path).toString('base64'), mode: mode & 0o7777, uid, gid };
}

/** Puts a file back as it was, or removes it. @param {string} root @param {string} file @param {KeptFile | null} kept */
export function restoreFile(root, file, kept) {
  const path = join(root, file);
  rmSync(newNameOf(path), { force: true });
  if (kept === null) return rmSync(path, { force: true });
  if ('target' in kept) {
    symlinkSync(kept.target, newNameOf(path));
    return renameSync(newNameOf(path), path);
  }
  writeWhole(path, Buffer.from(kept.base64, 'base64'), kept);
}

/** No name that sysctl.d or limits.d would read. @param {string} path */
const newNameOf = (path) => `${path}.new`;

/**
 * Writes a file so that it is there as a whole or not at all, also after a loss of power.
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
