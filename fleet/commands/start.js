/*
 * start: starts drones that outlive the command.
 */
import { formatNoun } from '../../lib/format.js';
import { Crew } from '../crew.js';
import {
  ALIASES,
  countOf,
  JSON_OPTION,
  LOAD_OPTIONS,
  PARAM_OPTIONS,
  PLACE_OPTIONS,
  paramsOf,
} from '../flags.js';
import { kindOf, openPlace } from '../places.js';
import { dronesText } from '../show/table.js';
import { exitOnSignals } from '../signals.js';

/** @type {import('../cli.js').Command} */
export const start = {
  name: 'start',
  words: '[n]',
  mostWords: 1,
  summary: 'start n drones, which run until you stop them',
  help: `
Without n, it starts as many as the streams need. Without --streams they are idle until 'set' gives them streams.

  node fleet/cli.js start 2
  node fleet/cli.js start --target 127.0.0.1:8888 --streams 20000 --ramp 2000
  HOLDFAST_TOKEN=… node fleet/drone.js --listen 10.0.0.5     on another machine, for --on hosts.json
`,
  options: [
    ...LOAD_OPTIONS.filter(({ flag }) => flag !== 'drones'),
    ...PLACE_OPTIONS,
    JSON_OPTION,
    ...PARAM_OPTIONS,
  ],
  aliases: ALIASES,
  act,
};

/** @param {string[]} words @param {Record<string, any>} values @returns {Promise<number>} */
async function act([n], values) {
  const { streams, ramp, churn, isJson } = values;
  const params = paramsOf(values);
  const say = (/** @type {string} */ line) =>
    void (isJson ? process.stderr : process.stdout).write(`${line}\n`);
  const drones = n === undefined ? 0 : countOf(n, 'start');
  exitOnSignals();
  const place = await openPlace(values, { say });
  const crew = new Crew(place, kindOf(values), { streams, ramp, churn, drones, params }, say);
  if (kindOf(values) === 'ec2') {
    const members = await place.start(drones || 1, crew.evenParams(drones || 1));
    if (!values.dryRun) tell(members, values);
    return 0;
  }
  try {
    await crew.start();
    await crew.aim();
  } catch (error) {
    await crew.close();
    throw error;
  }
  await place.release?.();
  tell(
    crew.slots.map(({ member }) => member),
    values,
  );
  return 0;
}

/** @param {import('../ask.js').Member[]} members @param {Record<string, any>} values */
function tell(members, { streams, isJson }) {
  if (isJson) {
    const drones = members.map(({ name, url, place }) => ({ name, url, place }));
    return void process.stdout.write(`${JSON.stringify({ drones, streams })}\n`);
  }
  for (const { name, url } of members) process.stdout.write(`  drone ${name}  ${url}\n`);
  const load = streams > 0 ? `${formatNoun(streams, 'stream')} to open` : 'idle';
  process.stdout.write(
    `${dronesText(members.length)} started, ${load}; watch them with 'status', end them with 'stop all'\n`,
  );
}
