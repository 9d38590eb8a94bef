/*
 * The options of drones on EC2, and their checks.
 */
import { isIP } from 'node:net';
import { HoldfastError } from '../../../lib/errors.js';
import { either, FLAG, option, text } from '../../../lib/options.js';
import { isLoopback } from '../../drone/consent.js';
import { changedParams, defaultParams } from '../../drone/params.js';
import { pairsOf } from '../../texts.js';

/** The token is the only protection of a drone from whoever can reach its port. */
const LEAST_TOKEN = 16;

/**
 * @param {RegExp} pattern of each @param {string} word @param {string} expected
 * @returns {import('../../../lib/options.js').Kind} of a comma-separated list
 */
const listOf = (pattern, word, expected) => ({
  expected,
  word,
  read: (given) => {
    const parts = [...new Set(given.split(','))];
    return parts.every((part) => pattern.test(part)) ? parts : undefined;
  },
});

const REGIONS = listOf(/^[a-z]{2}(-[a-z]+)+-\d+$/, 'REGIONS', 'AWS regions, as in us-east-1,eu-west-1');
const IMAGES = listOf(/^ami-[0-9a-f]{8,17}$/, 'IDS', 'image ids, one for each region');

/** '203.0.113.7' is '203.0.113.7/32' @type {import('../../../lib/options.js').Kind} */
const CIDR = {
  expected: 'an address or a range, as in 203.0.113.7 or 203.0.113.0/24',
  word: 'CIDR',
  read: (given) => {
    const [address, bits, ...more] = given.split('/');
    const most = { 0: -1, 4: 32, 6: 128 }[isIP(address)] ?? -1;
    const length = bits === undefined ? most : /^\d{1,3}$/.test(bits) ? Number(bits) : Number.NaN;
    return more.length === 0 && length >= 0 && length <= most ? `${address}/${length}` : undefined;
  },
};

/** @type {import('../../../lib/options.js').Kind} */
const TYPE = {
  ...text('TYPE', 'an instance type, as in t3.small'),
  read: (given) => (/^[a-z][a-z0-9-]*\.[a-z0-9-]+$/.test(given) ? given : undefined),
};

/** Used in tags and in the name of a security group. @type {import('../../../lib/options.js').Kind} */
const NAME = {
  ...text('NAME', 'letters, digits, dots and dashes, at most 64'),
  read: (given) => (/^[a-z0-9][a-z0-9._-]{0,63}$/i.test(given) ? given : undefined),
};

// biome-ignore format: a table reads best with one row per line
export const OPTIONS = [
  option('regions', 'regions', either('auto', REGIONS), 'auto', 'ec2: where to start instances; auto: the region of your AWS configuration (and every region when listing)'),
  option('type', 'instanceType', TYPE, 't3.small', 'ec2: instance type'),
  option('ami', 'ami', either('newest', IMAGES), 'newest', 'ec2: image with cloud-init, Amazon Linux 2023 or Debian 13; newest: the newest Amazon Linux 2023'),
  option('name', 'name', NAME, 'default', 'ec2: name of the fleet; only instances tagged with it are listed and ended'),
  option('from', 'from', either('nobody', CIDR), 'nobody', 'ec2: who can reach the control port of the drones, such as your own address'),
  option('private', 'isPrivate', FLAG, false, 'ec2: use the private addresses of the drones'),
  option('dry-run', 'dryRun', FLAG, false, 'ec2: print what would start and what it would cost, without contacting AWS'),
  option('control-token', 'token', text('TEXT', 'a text'), '', 'ec2: token required to control the drones; safer in HOLDFAST_TOKEN'),
];

/** @param {string} token @throws {HoldfastError} NO_TOKEN */
export function checkToken(token) {
  if (token.length >= LEAST_TOKEN && /^[\x21-\x7e]+$/.test(token)) return;
  const what = token === '' ? 'none was given' : 'the one given is not';
  const line = `drones on EC2 need a token of at least ${LEAST_TOKEN} characters without spaces, and ${what}`;
  throw new HoldfastError(
    'NO_TOKEN',
    `${line}: run export HOLDFAST_TOKEN=$(openssl rand -hex 16), and keep it`,
  );
}

/**
 * Finds errors before they cost money.
 * @param {import('../../texts.js').Texts} params
 * @returns {import('../../drone/params.js').Params}
 * @throws {HoldfastError} BAD_PARAM
 */
export function checkParams(params) {
  const given = pairsOf(params).filter(([, value]) => value !== '');
  const checked = changedParams(defaultParams(), given);
  if (checked.topic.length > 0 || checked.others.length > 0)
    throw new HoldfastError(
      'BAD_PARAM',
      'topic and several targets are not available on EC2: what drones need for them does not fit into the user data; use --on local or a file of hosts',
    );
  if (checked.tls)
    throw new HoldfastError(
      'BAD_PARAM',
      'tls is not available on EC2: what drones need for it does not fit into the user data; use --on local or a file of hosts',
    );
  if (checked.n === 0 || !(isLoopback(checked.host) || checked.host === 'localhost')) return checked;
  const line = `host got '${checked.host}', which on EC2 is the drone itself`;
  throw new HoldfastError(
    'BAD_PARAM',
    `${line}: give a name or address under which the drones reach the server`,
  );
}

/**
 * @param {string[]} regions
 * @param {'newest' | string[]} ami
 * @returns {(string | undefined)[]} one for each region; undefined for the newest
 */
export function imagesFor(regions, ami) {
  if (ami === 'newest') return regions.map(() => undefined);
  if (ami.length === regions.length) return ami;
  const line = `--ami got ${ami.length} images for ${regions.length} regions (${regions.join(', ')})`;
  throw new HoldfastError('BAD_OPTION', `${line}: expected one for each region, in the same order`);
}
