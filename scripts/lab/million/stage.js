/*
 * A server, a load, and what observes both while a million run goes through its phases.
 */
import { networkOfMany } from '../namespace.js';
import { Recorder } from '../phases.js';
import { closeStage, describe, openStage } from '../trial.js';
import { PauseLog } from './pauses.js';
import { Probe } from './probe.js';

/** @typedef {import('../experiment.js').Trial} Trial */
/** @typedef {import('../phases.js').Phases} Phases */

/** What a run does and sees. */
export class Watch {
  /** @param {Trial} trial @param {import('../steps.js').Stage} stage @param {boolean} isTls */
  constructor({ lab, name }, stage, isTls) {
    this.lab = lab;
    this.name = name;
    this.stage = stage;
    this.recorder = new Recorder(stage.server, stage.load);
    this.probe = new Probe(stage.server.port, isTls, lab.signal);
    this.pauses = new PauseLog(lab);
  }

  /** @param {string} phase @param {() => Promise<unknown>} act @param {() => string} [status] for the progress line */
  during(phase, act, status = () => this.stage.load.text()) {
    const { lab, name } = this;
    lab.status = () => `[${name}] ${phase}: ${status()}`;
    if (lab.view) lab.say(phase);
    return this.recorder.during(phase, act);
  }

  /** The same, while pauses of the machine are noted. @param {string} phase @param {() => Promise<unknown>} act @param {() => string} [status] */
  async duringWatched(phase, act, status) {
    await this.pauses.start();
    await this.during(phase, act, status);
    await this.pauses.stop(`${this.name}-pauses`);
  }
}

/**
 * @param {Trial} trial
 * @param {{ args?: string[], params?: import('../../../fleet/texts.js').Texts, most?: number, start?: typeof import('../server.js').startServer }} how `args`: of the server, `params`: of the drones, `start`: of the server
 * @param {(watch: Watch) => Promise<unknown>} act
 * @returns {Promise<{ phases: Phases, watch: Watch }>} after the server and the load have ended
 */
export async function onStage(trial, how, act) {
  const { lab } = trial;
  const stage = await openStage(trial, { network: networkOfMany(), ...how });
  const stopShowing = lab.view ? stage.server.showTo(lab.view) : () => {};
  const watch = new Watch(trial, stage, Boolean(how.params?.tls));
  try {
    await act(watch);
  } finally {
    watch.probe.stop();
    stopShowing();
    describe(trial, stage, watch.recorder.spans);
  }
  const phases = watch.recorder.phases();
  await closeStage(stage);
  return { phases, watch };
}
