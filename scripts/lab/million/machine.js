/*
 * Before a million streams: says which limits of the machine are too low, and offers to raise them.
 */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline/promises';
import { HoldfastError } from '../../../lib/errors.js';
import { formatCount } from '../../../lib/format.js';
import { findLimits, formatValue, mostStreams } from '../../../limits/index.js';
import { pathOfSysctl, readMachine } from '../../../limits/kernel.js';
import { hasOwnNetwork } from '../namespace.js';
import { ROOT } from '../server.js';

/** @typedef {import('../../../limits/finding.js').Finding} Finding */
/** @typedef {import('../../../limits/index.js').Wish} Wish */

/**
 * @param {{ streams: number, ramp: number, isApplied: boolean, most?: number }} given isApplied: raise limits without asking; most:
 *   streams that there may be later, for which limits are raised, too
 * @param {number} pingIntervalMs
 * @throws {HoldfastError} NO_ROOM, with the number that fits
 */
export async function prepareMachine({ streams, ramp, isApplied, most = streams }, pingIntervalMs) {
  /** @type {Wish} */
  const wish = { streams, transport: 'hold', pingIntervalMs, openRate: ramp, isFleetHere: true };
  const highest = { ...wish, streams: Math.max(streams, most) };
  const findings = tuneOwnNetwork(findLimits(readMachine(), highest));
  const low = findings.filter(({ isMet, fix }) => !isMet && fix.file !== '');
  if (low.length > 0) await raise(low, highest, isApplied);
  const forbidding = findLimits(readMachine(), wish).filter(({ isForbidding }) => isForbidding);
  if (forbidding.length > 0) throw noRoom(forbidding, wish);
}

/** @param {Finding[]} forbidding @param {Wish} wish */
function noRoom(forbidding, wish) {
  const most = mostStreams(readMachine(), wish);
  const fits =
    most > 0 ? `${formatCount(most)} fit: npm run million -- --streams ${most}` : 'no number of streams fits';
  return new HoldfastError(
    'NO_ROOM',
    `${formatCount(wish.streams)} streams do not fit here: ${forbidding.map(lineOf).join('; ')}; ${fits}`,
  );
}

/**
 * Raises what is too low in our own network at once: it disappears with the run.
 * @param {Finding[]} findings @returns {Finding[]} the others
 */
function tuneOwnNetwork(findings) {
  if (!hasOwnNetwork()) return findings;
  return findings.filter(
    ({ isMet, fix }) => isMet || !fix.line.startsWith('net.') || !fix.line.split('\n').every(isSet),
  );
}

/** @param {string} line as in /etc/sysctl.d @returns {boolean} */
function isSet(line) {
  const [name, value] = line.split(' = ');
  try {
    writeFileSync(`/${pathOfSysctl(name)}`, value);
    return true;
  } catch {
    return false; // a setting of the whole machine, and read-only in the namespace
  }
}

/** Runs tune, if it may. @param {Finding[]} low @param {Wish} wish @param {boolean} isApplied */
async function raise(low, { streams, openRate }, isApplied) {
  process.stderr.write(`These limits are too low for ${formatCount(streams)} streams:\n`);
  for (const finding of low) process.stderr.write(`  ${lineOf(finding)}\n`);
  const size = ['--streams', String(streams), '--fleet', '--open-rate', String(openRate)];
  const tune = ['scripts/tune.js', 'apply', ...size];
  if (!isApplied && !(await isWanted(tune))) return;
  spawnSync(process.execPath, tune, { cwd: ROOT, stdio: 'inherit' });
}

/** @param {Finding} finding @returns {string} */
function lineOf(finding) {
  const { name, now, needed, why } = finding;
  return `${name} is ${formatValue(finding, now)}, needed: ${formatValue(finding, needed)} (${why})`;
}

/** Asks the user; without a terminal, says what to do and goes on. @param {string[]} tune */
async function isWanted(tune) {
  const command = ['node', ...tune].join(' ');
  if (!process.stdin.isTTY || !process.stderr.isTTY) {
    process.stderr.write(`Continuing without changes; to raise them, run '${command}' or give --apply.\n`);
    return false;
  }
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  terminal.on('SIGINT', () => process.exit(130));
  const answer = await terminal.question(`Raise them now with '${command}' ('revert' undoes it)? [y/N] `);
  terminal.close();
  return /^y(es)?$/i.test(answer.trim());
}
