/*
 * One trial: a server, a load, and the steps in order, each one a phase. Leaves the CSV, and a JSON file that describes it.
 */
import { writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { readFacts } from './facts.js';
import { startLoad } from './load.js';
import { NETWORK } from './namespace.js';
import { median, Recorder } from './phases.js';
import { commandOf, startServer } from './server.js';

/** Used when a run does not say. The clients have to know it, too. */
const PING_INTERVAL_MS = 5000;
/** If others use more of the machine than this before the first stream, the report says so. */
const BUSY_SHARE = 0.1;

/** @typedef {import('./experiment.js').Trial} Trial */
/** @typedef {import('./phases.js').Phases} Phases */

/**
 * @param {Trial} trial
 * @param {(phases: Phases) => void} [check] throws a HoldfastError when the run is not as it should be
 * @returns {Promise<import('./experiment.js').Values>}
 */
export async function runSteps(trial, check) {
  const { lab, experiment, plan } = trial;
  const stage = await openStage(trial);
  const recorder = new Recorder(stage.server, stage.load);
  try {
    for (const step of experiment.steps?.(plan) ?? []) {
      lab.status = () => `[${trial.name}] ${step.name}: ${stage.load.text()}`;
      await recorder.during(step.name, () => step.run(stage));
    }
  } finally {
    describe(trial, stage, recorder.spans);
  }
  const phases = recorder.phases();
  await closeStage(stage);
  noteOthers(trial, phases);
  check?.(phases);
  return valuesOf(trial, phases);
}

/** @param {Trial} trial @param {Phases} phases @returns {import('./experiment.js').Values} */
export function valuesOf({ experiment }, phases) {
  return Object.fromEntries(experiment.figures.map(({ name, read }) => [name, read?.(phases) ?? null]));
}

/** What other programs did on the machine affects the figures. @param {Trial} trial @param {Phases} phases */
function noteOthers({ lab, name }, phases) {
  const idlePercent = median('idle', 'cpuIdlePercent')(phases);
  if (idlePercent === null) return;
  const { serverCpuPercent, dronesCpuPercent } = phases.idle;
  const allPercent = availableParallelism() * 100;
  const othersPercent = allPercent - idlePercent - serverCpuPercent - dronesCpuPercent;
  if (othersPercent > allPercent * BUSY_SHARE)
    lab.busy.push({ name, percent: (100 * othersPercent) / allPercent });
}

/**
 * A server, and a load without streams.
 * @param {Trial} trial
 * @param {{ most?: number, args?: string[], ramp?: number, network?: import('./namespace.js').Network, params?: import('../../fleet/texts.js').Texts, start?: typeof startServer }} [how]
 *   most: streams that there will be; params: of the drones; start: of the server
 * @returns {Promise<import('./steps.js').Stage>}
 */
export async function openStage(
  { lab, run, plan, name },
  {
    most = plan.streams,
    args = [],
    ramp = plan.ramp,
    network = NETWORK,
    params = {},
    start = startServer,
  } = {},
) {
  lab.status = () => `[${name}] starting`;
  const all = [...serverArgs(run.args ?? [], most), ...args];
  const { host, hosts } = network;
  const how = { name, args: all, nodeFlags: run.nodeFlags ?? [], host };
  const server = await start(lab, how);
  const interval = all[all.lastIndexOf('--ping-interval') + 1];
  const load = await startLoad(lab, {
    port: server.port,
    most,
    ramp,
    params: { interval, host: hosts, ...params },
  });
  return { lab, server, load, plan, command: commandOf(how).join(' ') };
}

/** @param {string[]} args @param {number} streams @returns {string[]} */
export function serverArgs(args, streams) {
  const interval = args.includes('--ping-interval') ? [] : ['--ping-interval', String(PING_INTERVAL_MS)];
  return ['--streams', String(streams), ...interval, ...args];
}

/** @param {import('./steps.js').Stage} stage */
export async function closeStage({ load, server }) {
  await load.close();
  await server.stop();
}

/**
 * Writes what the CSV does not contain: the machine, the command and the phases; and what the clients measured.
 * @param {Trial} trial @param {import('./steps.js').Stage} stage @param {Record<string, import('./phases.js').Span>} spans
 */
export function describe({ lab, experiment, run, name }, { load, command }, spans) {
  const facts = readFacts();
  const phases = Object.fromEntries(
    Object.entries(spans).map(([phase, { load: _, ...span }]) => [phase, span]),
  );
  const { machine } = facts;
  const description = {
    machine,
    experiment: experiment.name,
    run: run.name,
    command,
    sysctls: run.sysctls ?? {},
    phases,
    facts,
  };
  writeFileSync(join(lab.folder, `${name}.json`), `${JSON.stringify(description, null, 2)}\n`);
  writeFileSync(join(lab.folder, `${name}-fleet.json`), `${JSON.stringify(load.total(), null, 2)}\n`);
}
