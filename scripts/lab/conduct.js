/*
 * One experiment from its start to its report: its runs in turn, repeat after repeat (A B A B, not A A B B: what drifts
 * on the machine meets all of them alike).
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { HoldfastError, messageOf } from '../../lib/errors.js';
import { drawCharts } from './charts.js';
import { readFacts } from './facts.js';
import { Findings } from './findings.js';
import { reportText } from './report.js';
import { setSysctls } from './sysctls.js';
import { runSteps } from './trial.js';

/** @typedef {import('./experiment.js').Experiment} Experiment */
/** @typedef {import('./experiment.js').Run} Run */
/** @typedef {import('./report.js').Report} Report */

/**
 * @param {Experiment} experiment
 * @param {import('./plan.js').Plan} plan
 * @param {import('./lab.js').Lab} lab
 * @param {string} command that was given
 * @returns {Promise<Report>} of what was measured, where it was ended early
 */
export async function conduct(experiment, plan, lab, command) {
  const report = reportOf(experiment, plan, command);
  try {
    const runs = await prepared(experiment.runs(plan), lab, report);
    await runAll(experiment, runs, plan, lab, report);
    report.end = 'whole';
  } catch (error) {
    report.end = lab.signal.aborted ? 'interrupted' : 'failed';
    if (!lab.signal.aborted) report.problem = messageOf(error);
    if (!lab.signal.aborted && !(error instanceof Error && 'code' in error)) throw error;
  } finally {
    const problems = await lab.close();
    lab.noteBusy();
    if (report.end !== 'interrupted') report.charts = await drawCharts(lab, report);
    report.notes = [...lab.notes, ...problems.map(messageOf)];
    write(experiment, report, lab.folder);
  }
  return report;
}

/** @param {Experiment} experiment @param {import('./plan.js').Plan} plan @param {string} command @returns {Report} */
function reportOf({ name, question, how = [], steps, figures }, plan, command) {
  return {
    name,
    figures: figures.map(({ name, text, unit }) => ({ name, text, unit })),
    question,
    command,
    startedAt: new Date().toISOString(),
    facts: readFacts(),
    plan,
    how,
    steps: (steps?.(plan) ?? []).map((step) => ({ name: step.name, text: step.text })),
    runs: [],
    order: [],
    outcomes: [],
    sentences: [],
    notes: [],
    charts: [],
    end: 'interrupted',
    problem: '',
  };
}

/**
 * @param {Run[]} runs @param {import('./lab.js').Lab} lab @param {Report} report
 * @returns {Promise<Run[]>} those that can be run here
 */
async function prepared(runs, lab, report) {
  const ready = [];
  for (const run of runs) {
    lab.status = () => `preparing ${run.name}`;
    const why = run.skip || (run.prepare ? await run.prepare(lab) : '');
    if (why) lab.note(`${run.name} is skipped: ${why}`);
    else ready.push(run);
  }
  report.runs = ready.map(({ name, text = '', args = [], nodeFlags = [], sysctls = {} }) => ({
    name,
    text,
    args,
    nodeFlags,
    sysctls,
  }));
  return ready;
}

/**
 * @param {Experiment} experiment @param {Run[]} runs @param {import('./plan.js').Plan} plan
 * @param {import('./lab.js').Lab} lab @param {Report} report
 */
async function runAll(experiment, runs, plan, lab, report) {
  const { trial = runSteps } = experiment;
  for (let repeat = 1; repeat <= plan.repeats; repeat++) {
    for (const run of runs) {
      const name = `${run.name}-${repeat}`;
      report.order.push(name);
      const values = await tried({ lab, experiment, run, plan, name }, trial);
      if (values) report.outcomes.push({ run: run.name, repeat, values });
    }
  }
}

/**
 * @param {import('./experiment.js').Trial} all @param {NonNullable<Experiment['trial']>} trial
 * @returns {Promise<import('./experiment.js').Values | null>} null where a run that may fail did
 */
async function tried(all, trial) {
  const { lab, run, name } = all;
  const restore = await setSysctls(lab, run.sysctls ?? {});
  try {
    return await lab.unlessAborted(trial(all));
  } catch (error) {
    if (lab.signal.aborted || !run.mayFail || !(error instanceof HoldfastError)) throw error;
    lab.note(`${name} gave no figures: ${error.message}`);
    await lab.clean.clear();
    return null;
  } finally {
    await restore();
  }
}

/** @param {Experiment} experiment @param {Report} report @param {string} folder */
function write(experiment, report, folder) {
  const names = report.runs.map(({ name }) => name);
  const findings = new Findings(experiment.figures, names, report.outcomes);
  const isFound = report.outcomes.length > 0;
  report.sentences = isFound ? experiment.read(findings) : [];
  report.beside = isFound ? experiment.beside?.(findings) : '';
  writeFileSync(join(folder, 'report.json'), `${JSON.stringify(report, null, 2)}\n`);
  writeFileSync(join(folder, 'report.md'), reportText(report));
}
