/*
 * Executes one experiment from its start to its report: its runs in turn, repeat after repeat (A B A B, not A A B B, so
 * that whatever drifts on the machine affects all of them alike).
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { HoldfastError, messageOf } from '../../lib/errors.js';
import { drawCharts } from './charts.js';
import { readFacts } from './facts.js';
import { Findings } from './findings.js';
import { reportText } from './report.js';
import { setSysctls } from './sysctls.js';
import { valueText } from './text.js';
import { runSteps } from './trial.js';

const SMALLER = 'The targets are for a full run. This one was small, so its verdicts mean little.';

/** @typedef {import('./experiment.js').Experiment} Experiment */
/** @typedef {import('./experiment.js').Run} Run */
/** @typedef {import('./experiment.js').Values} Values */
/** @typedef {import('./report.js').Report} Report */
/** @typedef {import('./lab.js').Lab} Lab */
/** @typedef {import('./plan.js').Plan} Plan */

/**
 * @param {Experiment} experiment @param {Plan} plan @param {Lab} lab
 * @param {string} command that was given
 * @returns {Promise<Report>} with what was measured so far, if it ended early
 */
export async function execute(experiment, plan, lab, command) {
  const report = newReport(experiment, plan, command);
  try {
    const runs = await prepared(experiment.runs(plan), lab, report);
    if (experiment.round) await runRounds(experiment.round, runs, plan, lab, report);
    else await runTrials(experiment, runs, plan, lab, report);
    report.end = 'whole';
  } catch (error) {
    report.end = lab.signal.aborted ? 'interrupted' : 'failed';
    if (!lab.signal.aborted) report.problem = messageOf(error);
    if (!lab.signal.aborted && !(error instanceof Error && 'code' in error)) throw error;
  } finally {
    const problems = await lab.close();
    lab.noteBusy();
    if (report.end !== 'interrupted')
      report.charts = [...(await drawCharts(lab, report)), ...(await writeCharts(experiment, report, lab))];
    report.notes = [...lab.notes, ...problems.map(messageOf)];
    interpret(experiment, report);
    writeFileSync(join(lab.folder, 'report.json'), `${JSON.stringify(report, null, 2)}\n`);
    writeFileSync(join(lab.folder, 'report.md'), reportText(report));
  }
  return report;
}

/** @param {Experiment} experiment @param {Plan} plan @param {string} command @returns {Report} */
function newReport({ name, question, how = [], steps, figures }, plan, command) {
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

/** @param {Run[]} runs @param {Lab} lab @param {Report} report @returns {Promise<Run[]>} those that can run here */
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
 * @param {NonNullable<Experiment['round']>} round @param {Run[]} runs @param {Plan} plan @param {Lab} lab @param {Report} report
 */
async function runRounds(round, runs, plan, lab, report) {
  if (runs.length === 0) return;
  for (let repeat = 1; repeat <= plan.repeats; repeat++) {
    report.order.push(`round ${repeat}`);
    const record = (/** @type {string} */ run, /** @type {Values} */ values) => {
      report.outcomes.push({ run, repeat, values });
      lab.say(`  ${run}: ${valuesText(report, values)}`);
    };
    await lab.unlessAborted(round({ lab, plan, runs, name: String(repeat), record }));
  }
}

/** @param {Report} report @param {Values} values @returns {string} */
function valuesText({ figures }, values) {
  const known = figures.flatMap(({ name, text, unit }) => {
    const value = values[name];
    return typeof value === 'number' ? [`${text} ${valueText(value, unit)}`] : [];
  });
  return known.join(', ') || 'nothing to record';
}

/** @param {Experiment} experiment @param {Run[]} runs @param {Plan} plan @param {Lab} lab @param {Report} report */
async function runTrials(experiment, runs, plan, lab, report) {
  const { trial = runSteps } = experiment;
  for (let repeat = 1; repeat <= plan.repeats; repeat++) {
    for (const run of runs) {
      const name = `${run.name}-${repeat}`;
      report.order.push(name);
      const values = await runTrial({ lab, experiment, run, plan, name }, trial);
      if (values) report.outcomes.push({ run: run.name, repeat, values });
    }
  }
}

/**
 * @param {import('./experiment.js').Trial} all @param {NonNullable<Experiment['trial']>} trial
 * @returns {Promise<Values | null>} null when a run that may fail did
 */
async function runTrial(all, trial) {
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

/** @param {Experiment} experiment @param {Report} report @param {Lab} lab @returns {Promise<string[]>} the names of its own charts */
async function writeCharts(experiment, report, { folder }) {
  if (!experiment.charts || report.outcomes.length === 0) return [];
  const charts = await experiment.charts(findingsOf(experiment, report));
  for (const [name, svg] of Object.entries(charts)) writeFileSync(join(folder, name), svg);
  return Object.keys(charts);
}

/**
 * Fills in what follows from the figures: sentences, and a comparison.
 * @param {Experiment} experiment @param {Report} report
 */
export function interpret(experiment, report) {
  if (report.outcomes.length === 0) return;
  const findings = findingsOf(experiment, report);
  report.sentences = experiment.read(findings);
  const comparison = experiment.comparison?.(findings) ?? '';
  report.comparison =
    comparison && isSmaller(experiment, report) ? `${SMALLER}\n\n${comparison}` : comparison;
}

/** @param {Experiment} experiment @param {Report} report @returns {boolean} whether its targets are for more streams */
function isSmaller({ targets = [], usual }, { plan }) {
  return targets.length > 0 && plan.streams < (usual.streams ?? 0);
}

/** @param {Experiment} experiment @param {Report} report */
export function findingsOf({ figures }, { runs, outcomes }) {
  return new Findings(
    figures,
    runs.map(({ name }) => name),
    outcomes,
  );
}
