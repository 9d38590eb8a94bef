/*
 * apply and revert. Apply is a list of steps: keep what is there, load each sysctl, write each file. Any number of
 * them, from none to all, and any apply after, is undone by one revert.
 */
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { codeOf, messageOf } from '../../lib/errors.js';
import { LIMITS_FILE, SYSCTL_FILE } from '../../limits/index.js';
import { pathOfSysctl } from '../../limits/kernel.js';
import { addKept, dropKept, readKept, restoreFile, STATE_FILE, writeKept, writeWhole } from './backup.js';

const HEAD = '# Written by scripts/tune.js of Holdfast: `node scripts/tune.js revert` takes it back.';
const FILE_MODE = 0o644;

/** @typedef {import('../../limits/finding.js').Finding} Finding */

/**
 * @typedef {object} Step
 * @property {string} text what it does
 * @property {() => void} run throws where it can't be done here
 * @property {boolean} isVital that nothing may follow it where it fails
 */

/**
 * What apply does about findings.
 * @param {string} root the folder that stands for /
 * @param {Finding[]} findings those that a file changes and that are not met are seen to
 * @returns {Step[]} none where there is nothing to do
 */
export function stepsOf(root, findings) {
  const changes = findings.filter(({ isMet, fix }) => !isMet && fix.file !== '');
  if (changes.length === 0) return [];
  const files = [SYSCTL_FILE, LIMITS_FILE].filter((file) => changes.some(({ fix }) => fix.file === file));
  const sysctls = changes.filter(({ fix }) => fix.file === SYSCTL_FILE).map(({ fix }) => fix.line);
  /** @type {Set<string>} lines that the kernel did not take */
  const refused = new Set();
  return [
    keepStep(root, sysctls.map(nameOf), files),
    ...sysctls.map((line) => loadStep(root, line, refused)),
    ...files.map((file) => fileStep(root, file, changes, refused)),
  ];
}

/** @param {string} root @param {string[]} names @param {string[]} files @returns {Step} */
function keepStep(root, names, files) {
  const run = () => {
    const sysctls = Object.fromEntries(names.map((name) => [name, readSysctl(root, name)]));
    writeKept(root, addKept(root, readKept(root), sysctls, files));
  };
  return { text: `keeps what is there in ${join(root, STATE_FILE)}`, run, isVital: true };
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
  return { text: `sets ${name} to ${value} (it is ${was})`, run, isVital: false };
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
  return { text: `writes ${join(root, file)}:${rows}`, run, isVital: false };
}

/**
 * A limit above fs.nr_open can't be set, and then nobody can log in.
 * @param {string} root @param {string[]} lines
 */
function checkCeiling(root, lines) {
  const ceiling = Number(readText(join(root, pathOfSysctl('fs.nr_open'))) || Number.POSITIVE_INFINITY);
  const nofile = Math.max(...lines.map((line) => Number(line.split(' ')[3])));
  if (nofile > ceiling)
    throw new Error(`nofile ${nofile} is above fs.nr_open (${ceiling}), and would let nobody log in`);
}

/** @param {string} path @returns {string} '' where there is none */
function readText(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return '';
    throw error;
  }
}

/**
 * Puts lines into a drop-in: in the place of those that say the same thing, or at the end. All else stays.
 * @param {string} text '' for a new one
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
 * A line of limits.conf(5) counts from the next login on, so the limit of now does not tell what it says.
 * @param {string} old @param {string} line
 */
function isHigherLimit(old, line) {
  return !line.includes('=') && Number(old.trim().split(/\s+/)[3]) > Number(line.trim().split(/\s+/)[3]);
}

/** @param {string} line @returns {string} the sysctl, or the domain, kind and item of limits.conf(5) */
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
 * Runs steps. What can't be done is said, and the rest goes on.
 * @param {Step[]} steps
 * @param {(line: string) => void} say
 * @returns {number} how many failed
 */
export function runSteps(steps, say) {
  let failed = 0;
  for (const { text, run, isVital } of steps) {
    try {
      run();
      say(text);
    } catch (error) {
      if (isVital) throw error;
      failed++;
      say(`can't: ${text.split('\n')[0].replace(/:$/, '')}: ${reasonOf(error)}`);
    }
  }
  return failed;
}

/** @type {Record<string, string>} */
const REASONS = {
  EROFS: 'it is read-only here, as in a container: set it on the host',
  EACCES: 'not allowed: run it as root, on the host where this is a container',
  EPERM: 'not allowed: run it as root, on the host where this is a container',
  EINVAL: 'the kernel does not take this value',
  ENOENT: 'it is not here',
};

/** @param {unknown} error */
function reasonOf(error) {
  const code = codeOf(error);
  return code in REASONS ? `${REASONS[code]} (${code})` : messageOf(error);
}

/**
 * Takes back all that was applied.
 * @param {string} root
 * @returns {{ steps: Step[], end: () => void }} `end` forgets what was kept; for after steps none of which failed.
 *   No steps where nothing was applied
 */
export function revertSteps(root) {
  const kept = readKept(root);
  if (!kept) return { steps: [], end: () => {} };
  const loads = Object.entries(kept.sysctls).map(([name, text]) => ({
    text: `sets ${name} to ${text.trim().replace(/\s+/g, ' ') || 'none'}, as it was`,
    run: () => resetSysctl(root, name, text),
    isVital: false,
  }));
  const files = Object.entries(kept.files).map(([file, was]) => ({
    text: was
      ? `puts ${join(root, file)} back as it was`
      : `removes ${join(root, file)}, which was not there`,
    run: () => restoreFile(root, file, was),
    isVital: false,
  }));
  // Files first: a limit of descriptors above fs.nr_open would let nobody log in.
  return { steps: [...files, ...loads], end: () => dropKept(root, kept) };
}

/**
 * What is as it was needs no right to write; what is gone (with its module of the kernel) has nothing to put back.
 * @param {string} root @param {string} name @param {string} text
 */
function resetSysctl(root, name, text) {
  if (!existsSync(join(root, pathOfSysctl(name)))) return;
  if (readSysctl(root, name) === text) return;
  writeSysctl(root, name, text);
  const now = readSysctl(root, name);
  if (now !== text) throw new Error(`it is ${now.trim()} now`);
}
