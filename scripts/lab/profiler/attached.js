/*
 * What the attached profiler costs a server: CPU to open a stream of the hub, where JS does most for a request.
 */
import { clientOf, startHub } from '../hub/subjects.js';
import { busyUs, idleShare } from '../usage.js';

const ATTACH = new URL('../../../examples/microprofiler/attach.js', import.meta.url);
/** Climbs that are not measured, because code gets faster as it runs, and those that are. */
const WARM_CLIMBS = 4;
const CLIMBS = 6;
export const ALL_CLIMBS = WARM_CLIMBS + CLIMBS;
/** Rests, in units of a tenth of holdS: to see what a server uses while idle, and of each climb. */
const IDLE_UNITS = 3;
const CLIMB_UNITS = 2;

/** The runs: how many calls one measured call stands for; 0 without the profiler. */
export const SERVERS = { 'server-off': 0, 'server-16': 16, 'server-all': 1 };

/** @typedef {import('../experiment.js').Round} Round */
/** @typedef {{ run: string, server: import('../server.js').LabServer, client: import('../client.js').Client, idle: number }} Subject */

/** All servers run at the same time and take turns. @param {Round} round */
export async function measureAttached(round) {
  const { lab, record, name, runs } = round;
  const subjects = [];
  for (const [run, every] of Object.entries(SERVERS))
    if (runs.some((one) => one.name === run)) subjects.push(await startSubject(round, run, every));
  for (let climb = -WARM_CLIMBS; climb < CLIMBS; climb++) {
    for (const subject of subjects) {
      lab.status = () => `[${name}] ${subject.run}`;
      const openUs = await openingUs(round, subject);
      if (climb >= 0) record(subject.run, { openUs });
    }
  }
  for (const { client, server } of subjects) {
    await client.stop();
    await server.stop();
  }
}

/** @param {Round} round @param {string} run @param {number} every @returns {Promise<Subject>} */
async function startSubject(round, run, every) {
  const nodeFlags = every === 0 ? [] : [`--import=${ATTACH.href}?every=${every}`];
  const server = await startHub(round, { part: `attached-${run}`, nodeFlags });
  const idle = await idleShare(round.lab, server, unitMs(round) * IDLE_UNITS);
  return { run, server, idle, client: clientOf(round, server, 'topic') };
}

/** @param {Round} round @param {Subject} subject @returns {Promise<number>} µs of CPU per opening */
async function openingUs(round, { server, client, idle }) {
  const { lab, plan } = round;
  const low = Math.round(plan.streams / 3);
  await client.close();
  await lab.sleep(unitMs(round));
  await client.open(low);
  await lab.sleep(unitMs(round));
  return (await busyUs(server, idle, () => client.open(plan.streams))) / (plan.streams - low);
}

/** @param {Round} round */
function unitMs({ plan }) {
  return (plan.holdS * 1000) / 10;
}

/** @param {number} holdS @returns {number} of one server, in a round */
export function restSeconds(holdS) {
  return (holdS / 10) * (IDLE_UNITS + ALL_CLIMBS * CLIMB_UNITS);
}
