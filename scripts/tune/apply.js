/*
 * apply and revert. Apply is a list of steps: save the old values, load each sysctl, write each file. However many of them
 * were executed, and however often, one revert undoes all of it.
 */
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { codeOf, messageOf } from '../../lib/errors.js';
import { LIMITS_FILE, SYSCTL_FILE } from '../../limits/index.js';
import { pathOfSysctl } from '../../limits/kernel.js';
import {
  addToBackup,
  deleteBackup,
  readBackup,
  restoreFile,
  STATE_FILE,
  writeBackup,
  writeWhole,
} from './backup.js';

const HEAD =
  '# Written by scripts/tune.js of Holdfast; `node scripts/tune.js revert` restores the old values.';
const FILE_MODE = 0o644;

/** @typedef {import('../../limits/finding.js').Finding} Finding */

/**
 * @typedef {object} Step
 * @property {string} text what it does, beginning with a verb
 * @property {() => void} run throws if it can't be done here
 * @property {boolean} isVital if it fails, no step may follow
 */

/**
 * The steps of apply.
 * @param {string} root the folder to use instead of /
 * @param {Finding[]} findings those that are not met and can be changed in a file lead to steps
 * @returns {Step[]} empty if there is nothing to do
 */
export function stepsOf(root, findings) {
  const changes = findings.filter(({ isMet, fix }) => !isMet && fix.file !== '');
  if (changes.length === 0) return [];
  const files = [SYSCTL_FILE, LIMITS_FILE].filter((file) => changes.some(({ fix }) => fix.file === file));
  const sysctls = changes.filter(({ fix }) => fix.file === SYSCTL_FILE).map(({ fix }) => fix.line);
  /** @type {Set<string>} lines that the kernel did not accept */
  const refused = new Set();
  return [
    backupStep(root, sysctls.map(nameOf), files),
    ...sysctls.map((line) => loadStep(root, line, refused)),
    ...files.map((file) => fileStep(root, file, changes, refused)),
  ];
}

/** @param {string} root @param {string[]} names @param {string[]} files @returns {Step} */
function backupStep(root, names, files) {
  const run = () => {
    const sysctls = Object.fromEntries(names.map((name) => [name, readSysctl(root, name)]));
    writeBackup(root, addToBackup(root, readBackup(root), sysctls, files));
  };
  return { text: `save the old values in ${join(root, STATE_FILE)}`, run, isVital: true };
}

/** @param {string} root @param {string} line 'net.core.somaxconn = 4096' @param {Set<string>} refused @returns {Step} */
function loadStep(root, line, refused) {
  const name = nameOf(line);
  const value = line.slice(line.indexOf('=') + 1).trim();
  const was = readSysctl(root, name).trim().replace(/\s+/g, ' ') || 'none';
  const run = () => {
    refused.add(line);
    writeSysctl(root, name, `${value}\n`);
    refused.delete(line);
  };
  return { text: `set ${name} from ${was} to ${value}`, run, isVital: false };
}

/** @param {string} root @param {string} file @param {Finding[]} changes @param {Set<string>} refused @returns {Step} */
function fileStep(root, file, changes, refused) {
  const all = changes.filter(({ fix }) => fix.file === file).flatMap(({ fix }) => fix.line.split('\n'));
  const run = () => {
    const lines = all.filter((line) => !refused.has(line));
    if (lines.length === 0) return;
    if (file === LIMITS_FILE) checkCeiling(root, lines);
    const path = join(root, file);
    const mode = statSync(path, { throwIfNoEntry: false })?.mode ?? FILE_MODE;
    writeWhole(path, Buffer.from(mergeLines(readText(path), lines)), { mode: mode & 0o777 });
  };
  const rows = all.map((line) => `\n    ${line}`).join('');
  return { text: `write ${join(root, file)}:${rows}`, run, isVital: false };
}

/**
 * A limit above fs.nr_open can't be set, and then nobody could log in.
 * @param {string} root @param {string[]} lines
 */
function checkCeiling(root, lines) {
  const ceiling = Number(readText(join(root, pathOfSysctl('fs.nr_open'))) || Number.POSITIVE_INFINITY);
  const nofile = Math.max(...lines.map((line) => Number(line.split(' ')[3])));
  if (nofile > ceiling)
    throw new Error(`nofile ${nofile} is above fs.nr_open (${ceiling}), so nobody could log in`);
}

/** @param {string} path @returns {string} '' if there is no such file */
function readText(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return '';
    throw error;
  }
}

/**
 * Puts lines into a drop-in file: in place of lines about the same setting, or at the end. Everything else stays.
 * @param {string} text '' for a new file
 * @param {string[]} lines
 * @returns {string}
 */
export function mergeLines(text, lines) {
  const merged = (text || HEAD).replace(/\n$/, '').split('\n');
  for (const line of lines) {
    const at = merged.findLastIndex((old) => !/^\s*[#;]/.test(old) && subjectOf(old) === subjectOf(line));
    if (at === -1) merged.push(line);
    else if (!isHigherLimit(merged[at], line)) merged[at] = line;
  }
  return `${merged.join('\n')}\n`;
}

/**
 * A line of limits.conf(5) takes effect at the next login, so the current limit may be lower than the line says.
 * @param {string} old @param {string} line
 */
function isHigherLimit(old, line) {
  return !line.includes('=') && Number(old.trim().split(/\s+/)[3]) > Number(line.trim().split(/\s+/)[3]);
}

/** @param {string} line @returns {string} its setting: the sysctl, or the domain, type and item of limits.conf(5) */
function subjectOf(line) {
  return line.includes('=') ? nameOf(line).replace(/^-/, '') : line.trim().split(/\s+/).slice(0, 3).join(' ');
}

/** @param {string} line */
const nameOf = (line) => line.slice(0, line.indexOf('=')).trim();

/** @param {string} root @param {string} name @returns {string} exactly */
function readSysctl(root, name) {
  return readFileSync(join(root, pathOfSysctl(name)), 'utf8');
}

/** @param {string} root @param {string} name @param {string} text */
function writeSysctl(root, name, text) {
  writeFileSync(join(root, pathOfSysctl(name)), text);
}

/**
 * Executes steps. If one fails, it says so and goes on.
 * @param {Step[]} steps
 * @param {(line: string) => void} say
 * @returns {number} how many failed
 */
export function runSteps(steps, say) {
  let failed = 0;
  for (const { text, run, isVital } of steps) {
    try {
      run();
      say(`done: ${text}`);
    } catch (error) {
      if (isVital) throw error;
      failed++;
      say(`can't ${text.split('\n')[0].replace(/:$/, '')}: ${reasonOf(error)}`);
    }
  }
  return failed;
}

/** @type {Record<string, string>} */
const REASONS = {
  EROFS: 'read-only here, as in a container: set it on the host',
  EACCES: 'not allowed: run it as root, and on the host if this is a container',
  EPERM: 'not allowed: run it as root, and on the host if this is a container',
  EINVAL: 'the kernel does not accept this value',
  ENOENT: 'it does not exist',
};

/** @param {unknown} error */
function reasonOf(error) {
  const code = codeOf(error);
  return code in REASONS ? `${REASONS[code]} (${code})` : messageOf(error);
}

/**
 * The steps of revert.
 * @param {string} root
 * @returns {{ steps: Step[], end: () => void }} `end` deletes the saved values, once all steps have succeeded. No steps if
 *   nothing was applied
 */
export function revertSteps(root) {
  const backup = readBackup(root);
  if (!backup) return { steps: [], end: () => {} };
  const loads = Object.entries(backup.sysctls).map(([name, text]) => ({
    text: `set ${name} back to ${text.trim().replace(/\s+/g, ' ') || 'none'}`,
    run: () => resetSysctl(root, name, text),
    isVital: false,
  }));
  const files = Object.entries(backup.files).map(([file, was]) => ({
    text: was ? `restore ${join(root, file)}` : `remove ${join(root, file)}, which did not exist before`,
    run: () => restoreFile(root, file, was),
    isVital: false,
  }));
  // Files first: with a descriptor limit above fs.nr_open nobody could log in.
  return { steps: [...files, ...loads], end: () => deleteBackup(root, backup) };
}

/**
 * Skips what has its old value already, or has disappeared with its kernel module.
 * @param {string} root @param {string} name @param {string} text
 */
function resetSysctl(root, name, text) {
  if (!existsSync(join(root, pathOfSysctl(name)))) return;
  if (readSysctl(root, name) === text) return;
  writeSysctl(root, name, text);
  const now = readSysctl(root, name);
  if (now !== text) throw new Error(`it is still ${now.trim()}`);
}
