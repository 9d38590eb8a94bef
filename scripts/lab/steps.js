/*
 * The steps of a scenario: each has a name, a duration and an action, and is a phase of the run.
 */

const POLL_MS = 1000;

/**
 * @typedef {object} Stage what a step acts on
 * @property {import('./lab.js').Lab} lab
 * @property {import('./load.js').Load} load
 * @property {import('./server.js').LabServer} server
 * @property {import('./plan.js').Plan} plan
 * @property {string} command the server's, as a person would repeat it
 *
 * @typedef {object} Step
 * @property {string} name of its phase
 * @property {string} text what it does, for the report
 * @property {number} seconds about how long
 * @property {(stage: Stage) => Promise<unknown>} run
 */

/** Changes nothing. @param {string} name @param {number} seconds @returns {Step} */
export function rest(name, seconds) {
  return { name, text: `rest for ${seconds} s`, seconds, run: (stage) => wait(stage, seconds) };
}

/** Keeps open what is open. @param {string} name @param {number} seconds @returns {Step} */
export function hold(name, seconds) {
  return { ...rest(name, seconds), text: `hold for ${seconds} s` };
}

/** @param {string} name @param {import('./plan.js').Plan} plan @param {number} [share] of the streams @returns {Step} */
export function up(name, { streams, ramp }, share = 1) {
  const target = Math.round(streams * share);
  const text = `open streams until there are ${target}, ${ramp} per second`;
  return { name, text, seconds: Math.ceil(target / ramp) + 1, run: (stage) => change(stage, target) };
}

/** Closes streams all at once. @param {string} name @param {import('./plan.js').Plan} plan @param {number} [share] that stays @returns {Step} */
export function down(name, { streams }, share = 0) {
  const target = Math.round(streams * share);
  return {
    name,
    text: `close streams, all at once, until there are ${target}`,
    seconds: 2,
    run: (stage) => change(stage, target),
  };
}

/** The usual scenario: idle, opening, held. @param {import('./plan.js').Plan} plan @returns {Step[]} */
export function upAndHold(plan) {
  return [rest('idle', plan.idleS), up('up', plan), hold('held', plan.holdS)];
}

/** @param {Stage} stage @param {number} seconds */
async function wait({ lab, load, server }, seconds) {
  const endMs = performance.now() + seconds * 1000;
  for (;;) {
    const leftMs = endMs - performance.now();
    if (leftMs <= 0) return;
    server.check();
    await load.pollCounts();
    await lab.sleep(Math.max(0, Math.min(POLL_MS, endMs - performance.now())));
  }
}

/** @param {Stage} stage @param {number} target streams */
export async function change({ load, server }, target) {
  server.check();
  await load.set(target);
  await load.untilThere();
}
