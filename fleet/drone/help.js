/*
 * The help and the version of a drone. They are not sent to EC2, where nobody reads them.
 */
import { optionLines } from '../../lib/help.js';
import { readVersion } from '../../lib/version.js';
import { OPTIONS } from './options.js';
import { PARAMS } from './params.js';

/** @param {{ version: boolean }} asked for the version or the help */
export function textOf({ version }) {
  return version ? `${readVersion()}\n` : helpText();
}

function helpText() {
  return `Usage: node fleet/drone.js [options]

Opens streams to a server, keeps the requested number open, and measures what clients see. It is controlled over HTTP:
GET / returns everything it measured, GET /counts only the counts, POST /set?n=1000&ramp=500 changes parameters,
POST /restart reopens all streams and counts from 0, POST /stop ends it.

Parameters, which can be changed while it runs:
${optionLines(PARAMS)}

Options:
${optionLines(OPTIONS)}

Ctrl-C closes the streams and ends it.
`;
}
