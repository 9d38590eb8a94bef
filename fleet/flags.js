/*
 * The options that commands of the fleet share, and their values.
 */
import { readFileSync } from 'node:fs';
import { HoldfastError } from '../lib/errors.js';
import { FLAG, integer, option, text } from '../lib/options.js';
import { FORMER } from './drone/formats/params.js';
import { changedParams, defaultParams, PARAMS } from './drone/params.js';
import { certificatesIn } from './drone/tls/params.js';
import { splitServers } from './drone/topics/servers.js';
import { defaultFolder } from './on/registry.js';
import { pairsOf } from './texts.js';

const MOST_STREAMS = 100_000_000;
const MOST_DRONES = 1024;
const HTTPS_PORT = '443';
/** The parameter whose value is in a file. */
const CA = 'tls-ca';
/** Parameters that these commands take as a total and divide among the drones, choose themselves, or leave to `set`, and a former name. */
const SHARED = ['n', 'ramp', 'churn', 'away', 'first', 'step', FORMER];

/** @typedef {import('../lib/options.js').Option} Option */

/** '127.0.0.1:8888', '[::1]:8888', 'load.example:8888-8891', '10.0.0.5:8888,10.0.0.6:8888', 'https://localhost:8443' @type {import('../lib/options.js').Kind} */
const TARGET = {
  expected:
    'a host and its ports, as in 127.0.0.1:8888, or several, separated by commas; or https:// and the same for TLS',
  word: 'HOST:PORTS,…',
  read: (given) => {
    const { scheme, servers } = withoutScheme(given);
    const [first, ...more] = splitServers(servers);
    const found = /^(?:\[([^\]]+)\]|([^:]+))(?::(.+))?$/.exec(first);
    if (!found) return undefined;
    const [, six, name, port] = found;
    const others = more.join(',');
    const isGood =
      paramKind('host').read(six ?? name) &&
      (!port || paramKind('port').read(port)) &&
      (!others || paramKind('others').read(others));
    return isGood
      ? {
          host: six ?? name,
          ...(port ? { port } : scheme === 'https' ? { port: HTTPS_PORT } : {}),
          ...(others ? { others } : {}),
          ...(scheme === 'https' ? { tls: '1' } : {}),
        }
      : undefined;
  },
};

/** @param {string} given 'https://a:1,b:2' or 'https://a:1,https://b:2/' @returns {{ scheme: string, servers: string }} scheme '' for none */
function withoutScheme(given) {
  const scheme = /^(https?):\/\//.exec(given)?.[1] ?? '';
  if (scheme === '') return { scheme, servers: given };
  return { scheme, servers: given.replaceAll(`${scheme}://`, '').replaceAll(/\/(?=,|$)/g, '') };
}

/** @param {string} name */
function paramKind(name) {
  return /** @type {Option} */ (PARAMS.find(({ flag }) => flag === name)).kind;
}

// biome-ignore format: a table reads best with one row per line
/** Where the drones are. */
export const PLACE_OPTIONS = [
  option('on', 'on', text('PLACE', 'local, ec2, or a file of hosts'), 'local', 'where the drones run: local, ec2, or a file such as hosts.json'),
  option('fleet-dir', 'folder', text('DIR', 'a folder'), defaultFolder(), 'folder where the drones of this machine register'),
];

export const JSON_OPTION = option('json', 'isJson', FLAG, false, 'print JSON, for scripts');

// biome-ignore format: a table reads best with one row per line
/** What to open, and where, over all drones. */
export const LOAD_OPTIONS = [
  option('target', 'target', TARGET, '', 'the server to load, or several that share the streams, such as the nodes of a hub: a stream that comes back takes the next one; sets --host, --port and --others, and --tls if it begins with https://'),
  option('streams', 'streams', integer(0, MOST_STREAMS), 0, 'streams to open, divided among the drones', 'n'),
  option('ramp', 'ramp', integer(1, MOST_STREAMS), '', 'streams to open per second, over all drones (1000 per drone)'),
  option('churn', 'churn', integer(0, MOST_STREAMS), 0, 'streams to close and open again per second, over all drones, chosen at random; with their cursors'),
  option('drones', 'drones', integer(0, MOST_DRONES), 0, 'drones to start; 0: as many as needed'),
];

/** Parameters passed on to each drone as they are. @type {Option[]} */
export const PARAM_OPTIONS = PARAMS.filter(({ flag }) => !SHARED.includes(flag)).map((param) =>
  option(
    param.flag,
    `param-${param.flag}`,
    param.kind === FLAG ? FLAG : textKindOf(param),
    '',
    String(param.default) === '' || param.kind === FLAG ? param.help : `${param.help} (${param.default})`,
  ),
);

/** A drone's parameter is called --n, so this is accepted too, and so is the former name of --format. */
export const ALIASES = [
  option('n', 'streams', integer(0, MOST_STREAMS), 0, ''),
  option(FORMER, 'param-format', paramKind('format'), '', ''),
];

/** @param {Option} param @returns {import('../lib/options.js').Kind} whose values are the texts that were given, if they are good */
function textKindOf({ flag, kind }) {
  return {
    ...kind,
    ...(flag === CA ? { word: 'FILE', expected: `a file with ${kind.expected}` } : {}),
    read: (given) => {
      const text = paramText(flag, given);
      return text === undefined || kind.read(text) === undefined ? undefined : text;
    },
  };
}

/**
 * @param {string} flag of a parameter @param {string} given
 * @returns {string | undefined} what drones get, who can't read files of this machine; undefined if it can't be read
 */
export function paramText(flag, given) {
  if (flag === CA) return certificatesIn(contentOf(given.startsWith('@') ? given : `@${given}`) ?? '');
  return flag === 'token-secret' ? contentOf(given) : given;
}

/** @param {string} given '@FILE', or the text itself @returns {string | undefined} undefined if it can't be read */
export function contentOf(given) {
  if (!given.startsWith('@')) return given;
  try {
    return readFileSync(given.slice(1), 'utf8').trim();
  } catch {
    return undefined;
  }
}

/**
 * @param {Record<string, any>} values of the options above
 * @returns {import('./texts.js').Texts} the parameters for each drone, as text
 * @throws {HoldfastError} BAD_PARAM if some of them exclude each other
 */
export function paramsOf(values) {
  const given = PARAM_OPTIONS.map(({ flag, key }) => [flag, values[key]]).filter(([, value]) => value !== '');
  const texts = given.map(([flag, value]) => [
    flag,
    typeof value === 'boolean' ? (value ? '1' : '0') : value,
  ]);
  const params = { ...values.target, ...Object.fromEntries(texts) };
  const conflict = tlsConflictIn(params, values);
  if (conflict) throw new HoldfastError('BAD_PARAM', conflict);
  changedParams(defaultParams(), pairsOf(params)); // throws if some of them exclude each other
  return params;
}

/** @param {Record<string, string | string[]>} params @param {Record<string, any>} values @returns {string} '' if there is none */
function tlsConflictIn(params, { publishTo = [] }) {
  const isOn = (/** @type {string} */ name) => params[name] === '1';
  const speaksTls = isOn('tls') || publishTo.some((/** @type {string} */ url) => url.startsWith('https:'));
  if (isOn('insecure') && params[CA]) return 'insecure and tls-ca exclude each other: give one';
  const useless = ['insecure', 'no-resume'].filter(isOn).concat(params[CA] ? [CA] : []);
  if (!speaksTls && useless.length > 0)
    return `${useless[0]} needs tls: add --tls, or give an https:// target`;
  return '';
}

/**
 * @param {string} given
 * @param {string} what the command, for the error
 * @returns {number} @throws {HoldfastError} BAD_OPTION
 */
export function countOf(given, what) {
  const count = integer(1, MOST_DRONES).read(given);
  if (typeof count === 'number') return count;
  throw new HoldfastError(
    'BAD_OPTION',
    `${what} got '${given}': expected a whole number from 1 to ${MOST_DRONES}`,
  );
}
