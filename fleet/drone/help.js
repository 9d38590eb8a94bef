/*
 * The help of a drone. It is not sent to EC2, where nobody reads it.
 */
import { optionLines } from '../../lib/help.js';
import { OPTIONS } from './options.js';
import { PARAMS } from './params.js';

export function helpText() {
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
