/*
 * Drones that already run on other machines, listed by address in a file: [{ "host": "10.0.0.5", "port": 8889, "token": "…" }].
 */
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { HoldfastError, messageOf } from '../../lib/errors.js';
import { askAll, each, setParams, tell } from '../ask.js';
import { PARAMS } from '../drone/params.js';

const PORT = 8889;
const DEFAULTS = Object.fromEntries(PARAMS.map(({ flag, default: value }) => [flag, String(value)]));

/** @typedef {import('../ask.js').Member} Member */

/** @type {Record<string, { expected: string, isGood: (value: any) => boolean }>} */
const KEYS = {
  host: {
    expected: 'a name or an IP address',
    isGood: (value) => typeof value === 'string' && (isIP(value) !== 0 || /^[a-z0-9.-]{1,253}$/i.test(value)),
  },
  port: {
    expected: 'a port from 1 to 65535',
    isGood: (value) => Number.isInteger(value) && value >= 1 && value <= 65_535,
  },
  token: {
    expected: 'the token of the drone, in printable characters',
    isGood: (value) => typeof value === 'string' && /^[\x21-\x7e]*$/.test(value),
  },
};

/**
 * @param {{ file: string, isOwn?: boolean }} options isOwn: for one run, so parameters not given are set to their defaults
 * @throws {HoldfastError} BAD_HOSTS
 */
export function hosts({ file, isOwn = false }) {
  return new Hosts(file, readHosts(file), isOwn);
}

/** @param {string} file @returns {Member[]} @throws {HoldfastError} BAD_HOSTS with the file and the entry */
export function readHosts(file) {
  let entries;
  try {
    entries = JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    throw badHosts(`can't read ${file}: ${messageOf(error)}`);
  }
  if (!Array.isArray(entries) || entries.length === 0)
    throw badHosts(
      `${file} has no list of drones: expected [{ "host": "10.0.0.5", "port": 8889, "token": "…" }]`,
    );
  const members = entries.map((entry, i) => memberOf(file, entry, i));
  const twice = members.findIndex(({ url }, i) => members.findIndex((other) => other.url === url) < i);
  if (twice >= 0) throw badHosts(`${file} [${twice}] repeats ${members[twice].name}`);
  return members;
}

/** @param {string} file @param {any} entry @param {number} i @returns {Member} */
function memberOf(file, entry, i) {
  if (typeof entry !== 'object' || entry === null)
    throw badHosts(
      `${file} [${i}] is ${JSON.stringify(entry)}: expected { "host": …, "port": …, "token": … }`,
    );
  const { host, port, token } = { port: PORT, token: '', ...entry };
  for (const [key, value] of Object.entries({ ...entry, host, port, token })) {
    if (!(key in KEYS)) throw badHosts(`${file} [${i}] has '${key}': expected host, port, token`);
    if (!KEYS[key].isGood(value)) {
      const given = key === 'token' ? 'not valid' : (JSON.stringify(value) ?? 'missing');
      throw badHosts(`${file} [${i}].${key} is ${given}: expected ${KEYS[key].expected}`);
    }
  }
  const name = `${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
  return { name, url: `http://${name}`, token, place: 'hosts' };
}

/** @param {string} line */
function badHosts(line) {
  return new HoldfastError('BAD_HOSTS', line);
}

class Hosts {
  /** @param {string} file @param {Member[]} members @param {boolean} isOwn */
  constructor(file, members, isOwn) {
    this.file = file;
    this.isOwn = isOwn;
    this.members = members;
    /** The drones this command has given streams. @type {Member[]} */
    this.begun = [];
  }

  /**
   * Takes so many idle drones, which then count from 0.
   * @param {number} count @param {import('../texts.js').Texts} params
   * @returns {Promise<Member[]>}
   * @throws {HoldfastError} FEW_HOSTS, DRONES
   */
  async start(count, params) {
    const answers = await askAll(this.members);
    const free = answers.filter(({ stats }) => stats?.drone.state === 'idle').map(({ member }) => member);
    if (free.length < count) {
      const others = answers.filter(({ stats }) => stats?.drone.state !== 'idle').map(describe);
      const line = `${this.file} has ${free.length} idle drones, ${count} are needed (${others.join(', ') || 'it lists no others'}): free some with 'set n 0', or list more`;
      throw new HoldfastError('FEW_HOSTS', line);
    }
    this.begun = free.slice(0, count);
    await each(this.begun, async (member) => {
      await tell(member, 'restart');
      await setParams(member, this.isOwn ? { ...DEFAULTS, ...params } : { n: '0', ...params });
    });
    return this.begun;
  }

  async list() {
    return this.members;
  }

  /** @param {number | 'all'} count the last in the file end first @returns {Promise<number>} */
  async stop(count) {
    const answers = (await askAll(this.members)).filter(({ problem }) => problem !== 'gone');
    const chosen = count === 'all' ? answers : answers.slice(Math.max(0, answers.length - count));
    await each(
      chosen.map(({ member }) => member),
      (member) => tell(member, 'stop'),
    );
    return chosen.length;
  }

  /**
   * Makes its drones idle; they keep running.
   * @param {Promise<unknown>} [pending] requests to them that must not arrive after this
   */
  async close(pending) {
    await Promise.allSettled([pending]);
    await each(this.begun, (member) => setParams(member, { n: '0' }));
  }
}

/** @param {import('../ask.js').Answer} answer */
function describe({ member, stats, problem }) {
  return `${member.name} ${stats ? stats.drone.state : problem}`;
}
