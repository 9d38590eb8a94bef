/*
 * run: start drones, ramp, hold, report, stop.
 */
import { accessSync, constants, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { HoldfastError, messageOf } from '../../lib/errors.js';
import { machineLine } from '../../lib/machine.js';
import { integer, option, text } from '../../lib/options.js';
import { Crew } from '../crew.js';
import { defaultParams } from '../drone/params.js';
import { splitServers } from '../drone/topics/servers.js';
import { ALIASES, JSON_OPTION, LOAD_OPTIONS, PARAM_OPTIONS, PLACE_OPTIONS, paramsOf } from '../flags.js';
import { kindOf, openPlace } from '../places.js';
import { checkPublishing, PUBLISH_OPTIONS, publisherOf } from '../publish/options.js';
import { Run } from '../run.js';
import { ProgressView } from '../show/progress.js';
import { reportText } from '../show/report.js';
import { isScreen } from '../show/screen.js';
import { abortOnSignals } from '../signals.js';

const DAY_S = 86_400;
/** How long the ramp may take, beyond four times its expected duration. */
const RAMP_SLACK_S = 30;

// biome-ignore format: a table reads best with one row per line
const OPTIONS = [
  option('hold', 'holdS', integer(0, 30 * DAY_S), 60, 'seconds to hold the streams once all are open'),
  option('within', 'withinS', integer(1, 30 * DAY_S), '', 'seconds until all must be open (4 x streams / ramp + 30)'),
  option('report', 'report', text('FILE', 'a file'), '', 'write the report to this file, as JSON'),
];

/** @type {import('../cli.js').Command} */
export const run = {
  name: 'run',
  words: '',
  mostWords: 0,
  summary: 'start drones, open streams, hold them, report, stop: usually all you need',
  help: `
The exit status is 1 if a stream failed to open or was lost, or if not all were open in time, and 130 after Ctrl-C, which
still prints the report. The drones end with the command.

  node fleet/cli.js run --target 127.0.0.1:8888 --streams 10000 --hold 45
  node fleet/cli.js run -n 1000 --channel news --publish-every 100 --report report.json
  node fleet/cli.js run -n 2000 --topic 'room/{n%100}' --token-secret SECRET --publish 500 --churn 50
  node fleet/cli.js run -n 2000 --target 10.0.0.5:8888,10.0.0.6:8888,10.0.0.7:8888 --topic news --publish 50 --churn 50

With --topic, streams subscribe to topics of the hub at /.well-known/mercure (or --path), with a token each. With --publish,
the publications to a topic are numbered: a stream must get each of them exactly once and in order, also if it is closed and
opened again (--churn, or a loss) with its cursor. What was lost, repeated, out of order, or sent to the wrong stream is in
the report, and the exit status is 1. What was sent while a stream was not open must come in a replay: it is recovered. If the
hub says that it can't replay everything, that is a gap.

With --format, streams are Server-Sent Events (events), lines of JSON (ndjson), polls (poll) or WebSockets (websocket). A poll that has its
answer sends the next request on the same connection.

  node fleet/cli.js run -n 1000 --format websocket --channel news --publish-every 100

With --tls, or an https:// target, streams and publishers speak TLS 1.3, or 1.2. Certificates are checked as other programs do
(--tls-ca, --insecure). Streams that come back use a ticket of an earlier one, unless --no-resume says otherwise.

  node fleet/cli.js run --target https://localhost:8888 --streams 10000 --tls-ca ca.pem

Several targets are the nodes of one hub. They share the streams, and a stream that comes back takes the next one, with its
cursor. The publisher's connections are spread over them too; one whose node fails goes on at the next, with the same
publication, which has an id so that the hub stores it once (--publish-retry). All requests name the first target as their host.
`,
  options: [...LOAD_OPTIONS, ...OPTIONS, ...PUBLISH_OPTIONS, ...PLACE_OPTIONS, JSON_OPTION, ...PARAM_OPTIONS],
  aliases: ALIASES,
  act,
};

/** @param {string[]} _words @param {Record<string, any>} values @returns {Promise<number>} */
async function act(_words, values) {
  check(values);
  const signals = abortOnSignals();
  const out = values.isJson ? process.stderr : process.stdout;
  const view = new ProgressView(out, isScreen(out));
  const say = (/** @type {string} */ line) => view.note(line);
  const publisher = publisherOf(values, kindOf(values));
  await publisher?.check();
  const place = await openPlace(values, { isOwn: true, say });
  const { streams, ramp, churn, drones } = values;
  const wanted = { streams, ramp, churn, drones, params: paramsOf(values) };
  const crew = new Crew(place, kindOf(values), wanted, say);
  if (values.dryRun) return rehearse(place, crew, drones || 1);
  try {
    const report = await new Run({
      plan: planOf(values),
      crew,
      publisher,
      view,
      signal: signals.signal,
    }).run();
    view.end();
    tell(report, values);
    return signals.status() || (report.isOk ? 0 : 1);
  } finally {
    view.end();
    await publisher?.close();
    await crew.close();
  }
}

/** @param {Record<string, any>} values @throws {HoldfastError} BAD_OPTION: errors that would otherwise be found too late */
function check({ streams, report, ...values }) {
  if (streams === 0) throw new HoldfastError('BAD_OPTION', 'run needs the number of streams: --streams N');
  paramsOf(values);
  checkPublishing(values);
  if (report === '') return;
  try {
    accessSync(dirname(report), constants.W_OK);
  } catch (error) {
    throw new HoldfastError('BAD_OPTION', `can't write --report ${report}: ${messageOf(error)}`);
  }
}

/** @param {Record<string, any>} values @returns {import('../run.js').Plan} */
function planOf(values) {
  const { streams, holdS, withinS, ramp } = values;
  const params = paramsOf(values);
  const { host = defaultParams().host, port = String(defaultParams().port), others, tls } = params;
  const first = `${host.includes(':') ? `[${host}]` : host}:${port}`;
  return {
    streams,
    holdMs: holdS * 1000,
    withinMs: (withinS || Math.ceil((4 * streams) / (ramp || defaultParams().ramp)) + RAMP_SLACK_S) * 1000,
    place: kindOf(values),
    target: `${tls === '1' ? 'https://' : ''}${[first, ...(others ? splitServers(String(others)) : [])].join(', ')}`,
    hasTopics: params.topic !== undefined,
    hasTls: tls === '1',
    machine: machineLine(),
  };
}

/**
 * Prints what would be started.
 * @param {import('../places.js').Place} place @param {Crew} crew @param {number} count
 */
async function rehearse(place, crew, count) {
  await place.start(count, crew.evenParams(count));
  return 0;
}

/** @param {import('../show/report.js').Report} report @param {Record<string, any>} values */
function tell(report, { isJson, report: file }) {
  const text = `${JSON.stringify(report, null, 2)}\n`;
  process.stdout.write(isJson ? text : reportText(report));
  if (!file) return;
  try {
    writeFileSync(file, text);
  } catch (error) {
    throw new HoldfastError('REPORT', `can't write --report ${file}: ${messageOf(error)}`);
  }
}
