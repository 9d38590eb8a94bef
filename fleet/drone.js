/*
 * One load process: reads its options, opens its control port, and runs a drone until it is stopped.
 */
import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { exitWith, HoldfastError, messageOf } from '../lib/errors.js';
import { makeFolder } from '../lib/folder.js';
import { formatCount, printable } from '../lib/format.js';
import { tellParent } from '../lib/listening.js';
import { readOptions } from '../lib/options.js';
import { sumOf } from './drone/causes.js';
import { Control } from './drone/control.js';
import { createDialer } from './drone/dial.js';
import { Drone } from './drone/drone.js';
import { topics } from './drone/optional.js';
import { OPTIONS } from './drone/options.js';
import { PARAMS } from './drone/params.js';

const REPORT_MS = 1000;

async function main() {
  const { HOLDFAST_TOKEN: HOLDFAST_CONTROL_TOKEN } = process.env; // the other HOLDFAST_ variables belong to the server
  const options = [...PARAMS, ...OPTIONS];
  const { values, help, version } = readOptions(options, process.argv.slice(2), { HOLDFAST_CONTROL_TOKEN });
  if (help || version)
    return void process.stdout.write((await import('./drone/help.js')).textOf({ version }));
  const variables = await import('../lib/variables.js').catch(() => null); // not sent to EC2
  variables?.warnAboutVariables('drone');
  const {
    listen,
    listenPort,
    controlToken: token,
    register: folder,
    quiet,
    ...given
  } = /** @type {any} */ (values);
  const params = /** @type {import('./drone/params.js').Params} */ (given);
  const conflict = topics?.conflictIn(params);
  if (conflict) throw new HoldfastError('BAD_OPTION', conflict);
  const note = (/** @type {string} */ line) => void process.stderr.write(`drone: ${printable(line)}\n`);
  const drone = new Drone(await createDialer(), note);
  const stop = () => {
    control.close();
    clearInterval(report);
    process.stdout.write(lineOf(drone));
    drone.stop().then(() => process.exit(0));
  };
  const control = new Control(
    {
      stats: () => drone.stats(),
      counts: () => drone.counts(),
      set: (changes) => drone.set(changes),
      restart: () => drone.restart(),
      stop,
      note,
    },
    token,
  );
  const url = urlOf(listen, await control.listen(listen, listenPort));
  const report = setInterval(() => quiet || process.stdout.write(lineOf(drone)), REPORT_MS);
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, stop);
  endWithParent(stop);
  await drone.start(params);
  if (folder) register(folder, { url, token });
  process.stdout.write(`drone: control on ${url}/\n`);
  tellParent({ type: 'listening', url });
}

/**
 * A drone with an IPC channel ends when its parent does, unless the parent has said { type: 'release' } before.
 * @param {() => void} stop
 */
function endWithParent(stop) {
  process.once('disconnect', stop);
  process.on('message', (/** @type {{ type?: string } | null} */ message) => {
    if (message?.type === 'release') process.off('disconnect', stop);
  });
  if (process.connected === false) stop(); // it ended before we got here
}

/** @param {Drone} drone @returns {string} */
function lineOf(drone) {
  const counts = drone.counts();
  const { open, target, pings } = counts;
  const sample = drone.samples.at(-1);
  const streams = `streams ${formatCount(open)} of ${formatCount(target)} (${drone.state()})`;
  const failures = `failed ${formatCount(sumOf(counts.failed))}, lost ${formatCount(sumOf(counts.lost))}`;
  const problem = sample ? `last ${sample.cause}: ${JSON.stringify(sample.text)}` : '';
  return `drone: ${streams}, ${failures}, pings read ${formatCount(pings)}${problem ? ` (${printable(problem)})` : ''}\n`;
}

/**
 * Writes a file that says how to reach the drone, readable only by its user.
 * @param {string} folder @param {{ url: string, token: string }} how
 * @throws {HoldfastError} BAD_FOLDER
 */
function register(folder, how) {
  const file = join(folder, `${process.pid}.json`);
  try {
    makeFolder(folder, 0o700);
    writeFileSync(`${file}.part`, JSON.stringify({ pid: process.pid, ...how }), { mode: 0o600 });
    renameSync(`${file}.part`, file); // so that nobody reads half a file
  } catch (error) {
    throw new HoldfastError(
      'BAD_FOLDER',
      `can't write to --register ${folder}: ${messageOf(error)}; give another folder`,
    );
  }
  process.on('exit', () => rmSync(file, { force: true }));
}

/** @param {string} address @param {number} port */
function urlOf(address, port) {
  return `http://${address.includes(':') ? `[${address}]` : address}:${port}`;
}

main().catch((error) => exitWith('drone', error));
