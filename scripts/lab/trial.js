/*
 * One trial: a server, a load, and the steps in order, each a phase. Leaves the CSV and what is known beside it.
 */
import { writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { readFacts } from './facts.js';
import { startLoad } from './load.js';
import { NETWORK } from './namespace.js';
import { median, Recorder } from './phases.js';
import { commandOf, startServer } from './server.js';

/** For the client to know when pings are due; that of the server where a run does not say. */
const PING_INTERVAL_MS = 5000;
/** Where others take more of the machine than this, before there is a stream, it has other things to do. */
const BUSY_SHARE = 0.1;

/** @typedef {import('./experiment.js').Trial} Trial */

/** @param {Trial} trial @returns {Promise<import('./experiment.js').Values>} */
export async function runSteps(trial) {
  const { lab, experiment, plan } = trial;
  const stage = await openStage(trial);
  const recorder = new Recorder(stage.server, stage.load);
  try {
    for (const step of experiment.steps?.(plan) ?? []) {
      lab.status = () => `[${trial.name}] ${step.name}: ${stage.load.text()}`;
      await recorder.during(step.name, () => step.run(stage));
    }
  } finally {
    leave(trial, stage, recorder.spans);
  }
  const phases = recorder.phases();
  await closeStage(stage);
  sayWhoElse(trial, phases);
  return Object.fromEntries(experiment.figures.map(({ name, read }) => [name, read?.(phases) ?? null]));
}

/** What others did on the machine is in the figures, too. @param {Trial} trial @param {import('./phases.js').Phases} phases */
function sayWhoElse({ lab, name }, phases) {
  const idlePercent = median('idle', 'cpuIdlePercent')(phases);
  if (idlePercent === null) return;
  const { serverCpuPercent, dronesCpuPercent } = phases.idle;
  const allPercent = availableParallelism() * 100;
  const othersPercent = allPercent - idlePercent - serverCpuPercent - dronesCpuPercent;
  if (othersPercent > allPercent * BUSY_SHARE)
    lab.busy.push({ name, percent: (100 * othersPercent) / allPercent });
}

/**
 * A server and a load that is idle yet.
 * @param {Trial} trial
 * @param {{ most?: number, args?: string[], ramp?: number, network?: import('./namespace.js').Network }} [how] most: streams that there will be
 * @returns {Promise<import('./steps.js').Stage>}
 */
export async function openStage(
  { lab, run, plan, name },
  { most = plan.streams, args = [], ramp = plan.ramp, network = NETWORK } = {},
) {
  lab.status = () => `[${name}] starting`;
  const all = [...serverArgs(run.args ?? [], most), ...args];
  const { host, hosts } = network;
  const how = { name, args: all, nodeFlags: run.nodeFlags ?? [], host };
  const server = await startServer(lab, how);
  const interval = all[all.lastIndexOf('--ping-interval') + 1];
  const load = await startLoad(lab, { port: server.port, most, ramp, params: { interval, host: hosts } });
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
 * What the CSV does not say: the machine, the command, the phases; and what the clients saw.
 * @param {Trial} trial @param {import('./steps.js').Stage} stage @param {Record<string, import('./phases.js').Span>} spans
 */
export function leave({ lab, experiment, run, name }, { load, command }, spans) {
  const facts = readFacts();
  const phases = Object.fromEntries(
    Object.entries(spans).map(([phase, { load: _, ...span }]) => [phase, span]),
  );
  const { machine } = facts;
  const said = {
    machine,
    experiment: experiment.name,
    run: run.name,
    command,
    sysctls: run.sysctls ?? {},
    phases,
    facts,
  };
  writeFileSync(join(lab.folder, `${name}.json`), `${JSON.stringify(said, null, 2)}\n`);
  writeFileSync(join(lab.folder, `${name}-fleet.json`), `${JSON.stringify(load.total(), null, 2)}\n`);
}
