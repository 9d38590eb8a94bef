/*
 * The fleet command: starts, controls and watches drones. Each of its commands is a file in commands/.
 */
import { OPTIONS as SERVER_OPTIONS } from '../lib/config.js';
import { exitWith, HoldfastError } from '../lib/errors.js';
import { optionLines } from '../lib/help.js';
import { nearest } from '../lib/nearest.js';
import { readOptions } from '../lib/options.js';
import { warnAboutVariables } from '../lib/variables.js';
import { readVersion } from '../lib/version.js';
import { run } from './commands/run.js';
import { set } from './commands/set.js';
import { start } from './commands/start.js';
import { status } from './commands/status.js';
import { stop } from './commands/stop.js';

/**
 * @typedef {object} Command
 * @property {string} name
 * @property {string} words its arguments, as in '[n]'
 * @property {number} mostWords
 * @property {string} summary
 * @property {string} help details and examples
 * @property {import('../lib/options.js').Option[]} options
 * @property {import('../lib/options.js').Option[]} [aliases] accepted, but not listed
 * @property {(words: string[], values: Record<string, any>) => Promise<number>} act returns the exit status
 */

/** @type {Command[]} */
const COMMANDS = [run, start, status, set, stop];
const REQUESTS = {
  name: 'requests',
  words: 'URL',
  summary: 'load a route that answers requests, or memcached, and report as Apache ab does',
};

async function main() {
  const [given = '', ...args] = process.argv.slice(2);
  if (given === '--version') return say(`${readVersion()}\n`);
  if (given === '' || given === '--help' || given === '-h') return say(helpText());
  const [name, rest] = given === 'help' ? [args[0] ?? '', ['--help']] : [given, args];
  if (name === '') return say(helpText());
  if (name === REQUESTS.name) return (await import('./requests/requests.js')).main(rest);
  const command = COMMANDS.find((one) => one.name === name);
  if (!command) throw unknownCommand(name);
  const options = [...command.options, ...(await placeOptions(command, rest))];
  const { values, words, help, version } = readOptions(
    [...options, ...(command.aliases ?? [])],
    rest,
    knownVariables(),
    command.mostWords,
  );
  if (help) return say(commandHelp(command, options));
  if (version) return say(`${readVersion()}\n`);
  warnAboutVariables('fleet', [...options, ...SERVER_OPTIONS]);
  process.exit(await command.act(words, values));
}

/** The options of EC2, which are loaded only if it is asked for. @param {Command} command @param {string[]} args */
async function placeOptions({ options }, args) {
  const isAsked = args.some((arg, i) => arg === '--on=ec2' || (arg === '--on' && args[i + 1] === 'ec2'));
  if (!isAsked) return [];
  const { OPTIONS } = await import('./on/ec2/ec2.js');
  return OPTIONS.filter(({ flag }) => !options.some((one) => one.flag === flag));
}

/** The other HOLDFAST_ variables belong to the server. */
function knownVariables() {
  const { HOLDFAST_FLEET_DIR, HOLDFAST_ON, HOLDFAST_TOKEN: HOLDFAST_CONTROL_TOKEN } = process.env;
  return { HOLDFAST_FLEET_DIR, HOLDFAST_ON, HOLDFAST_CONTROL_TOKEN };
}

/** @param {string} name */
function unknownCommand(name) {
  const names = [...COMMANDS, REQUESTS].map((command) => command.name);
  const near = nearest(name, [...names, 'help']);
  const hint = near ? `did you mean ${near}? ` : '';
  return new HoldfastError(
    'BAD_COMMAND',
    `unknown command '${name}': ${hint}the commands are ${names.join(', ')}, help`,
  );
}

/** @param {string} text */
function say(text) {
  process.stdout.write(text);
}

function helpText() {
  const rows = [
    ...COMMANDS,
    REQUESTS,
    { name: 'help', words: '[command]', summary: 'show the options and examples of a command' },
  ];
  const lines = rows.map(({ name, words, summary }) => `  ${`${name} ${words}`.padEnd(24)}${summary}`);
  return `Usage: node fleet/cli.js COMMAND [options]

Opens a large number of streams to a server, from drones on this machine, other machines or EC2, and measures what
clients see.

${lines.join('\n')}

Try it, with a server on port 8888 of this machine:
  node fleet/cli.js run --target 127.0.0.1:8888 --streams 1000 --hold 45
`;
}

/** @param {Command} command @param {import('../lib/options.js').Option[]} options */
function commandHelp({ name, words, summary, help }, options) {
  return `Usage: node fleet/cli.js ${name}${words ? ` ${words}` : ''} [options]

${summary[0].toUpperCase()}${summary.slice(1)}.
${help}
Options:
${optionLines(options)}
`;
}

// The reader of stdout has gone, as in `status | head`.
process.stdout.on('error', () => process.exit(1));
main().catch((error) => exitWith('fleet', error));
