/*
 * Starts instances in several regions: evenly at first; what a region has no capacity for starts in the others.
 */
import { codeOf, HoldfastError, messageOf } from '../../../lib/errors.js';
import { formatNoun } from '../../../lib/format.js';
import { spread } from '../../spread.js';

/** @typedef {import('./region.js').Region} Region */
/** @typedef {import('./region.js').Instance} Instance */
/** @typedef {{ region: Region, instance: Instance }} Found */
/** @typedef {{ region: Region, launch: import('./region.js').Launch }} Plan */
/** @typedef {{ plan: Plan, asked: number, instances: Instance[], refusal: string, error?: unknown }} Outcome */

/**
 * @param {number} count
 * @param {Plan[]} plans one for each region
 * @param {(line: string) => void} say
 * @returns {Promise<Found[]>} fewer than requested if there is no capacity
 * @throws {HoldfastError} NO_CAPACITY if there is none at all; errors of AWS
 */
export async function launchAll(count, plans, say) {
  /** @type {Found[]} */
  const started = [];
  let willing = plans;
  let refusal = '';
  while (started.length < count && willing.length > 0) {
    const outcomes = await launchRound(count - started.length, willing);
    for (const outcome of outcomes) {
      const { region } = outcome.plan;
      started.push(...outcome.instances.map((instance) => ({ region, instance })));
      refusal = outcome.refusal || refusal;
      if (outcome.instances.length > 0) say(`${region.name}: started ${outcome.instances.length}`);
      if (outcome.refusal) say(`${outcome.refusal}; trying other regions`);
    }
    const failed = outcomes.find(({ error }) => error !== undefined);
    if (failed) throw withStarted(failed.error, started.length);
    willing = outcomes.filter(({ asked, instances }) => instances.length === asked).map(({ plan }) => plan);
  }
  if (started.length < count) reportMissing(count, started.length, refusal, say);
  return started;
}

/** @param {number} count @param {Plan[]} plans @returns {Promise<Outcome[]>} */
function launchRound(count, plans) {
  const shares = spread(count, plans.length);
  return Promise.all(
    plans.map(async (plan, i) => {
      const nothing = { plan, asked: shares[i], instances: [], refusal: '' };
      if (shares[i] === 0) return nothing;
      return plan.region
        .run(shares[i], plan.launch)
        .then((outcome) => ({ ...nothing, ...outcome }))
        .catch((error) => ({ ...nothing, error }));
    }),
  );
}

/** @param {number} count @param {number} started @param {string} refusal @param {(line: string) => void} say */
function reportMissing(count, started, refusal, say) {
  const line = `${started} of ${count} instances were started; the regions have no capacity for more`;
  const how = 'try other --regions or another --type';
  if (started === 0) throw new HoldfastError('NO_CAPACITY', `${line} (${refusal}): ${how}`);
  say(`${line}: ${how}`);
}

/** Instances that run already cost money, so the error mentions them. @param {unknown} error @param {number} started */
function withStarted(error, started) {
  if (started === 0 || !(error instanceof HoldfastError)) return error;
  const line = `${messageOf(error)}; ${formatNoun(started, 'instance')} started before, still running: stop them, or start the rest`;
  return new HoldfastError(codeOf(error), line);
}
