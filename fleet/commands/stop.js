/*
 * stop: ends drones.
 */
import { HoldfastError } from '../../lib/errors.js';
import { countOf, JSON_OPTION, PLACE_OPTIONS } from '../flags.js';
import { openPlace } from '../places.js';
import { dronesText } from '../show/table.js';

/** @type {import('../cli.js').Command} */
export const stop = {
  name: 'stop',
  words: 'n|all',
  mostWords: 1,
  summary: 'end n drones, or all',
  help: `
Their streams are closed. The drones started last end first.

  node fleet/cli.js stop all
  node fleet/cli.js stop all --on hosts.json
`,
  options: [...PLACE_OPTIONS, JSON_OPTION],
  act: async ([given], values) => {
    if (given === undefined)
      throw new HoldfastError('BAD_OPTION', "stop needs the number of drones: 'stop 1' or 'stop all'");
    const count = given === 'all' ? 'all' : countOf(given, 'stop');
    const place = await openPlace(values, { say: (line) => void process.stderr.write(`${line}\n`) });
    const stopped = await place.stop(count);
    process.stdout.write(
      values.isJson ? `${JSON.stringify({ stopped })}\n` : `${dronesText(stopped)} stopped\n`,
    );
    return 0;
  },
};
