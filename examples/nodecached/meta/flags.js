/*
 * The flags of meta commands: a letter, and for some a value behind it.
 */
import { readBig, readCas, readInt, readUint } from '../numbers.js';
import { expiryOf } from '../times.js';

/** @typedef {import('../requests.js').Requests} Requests */

const BAD_TOKEN = 'CLIENT_ERROR bad token in command line format';
const WITHOUT_VALUE = 'OPLkstcfvhuqlI';
const MOST_OPAQUE = 32;
const LAST_FLAG = 127;

/** A flag and its value. @typedef {{ letter: string, token: number }} Flag */

export class MetaFlags {
  constructor() {
    /** @type {Flag[]} in the order given */
    this.list = [];
    this.has = new Set();
    this.problem = '';
    /** @type {Buffer | null} the key, if it was in base64 */
    this.key = null;
    this.exptime = 0; // T
    this.vivifyExptime = 0; // N
    this.recacheAt = 0; // R
    this.flags = 0; // F
    this.cas = 0; // C
    this.mode = ''; // M
    this.initial = 0n; // J
    this.delta = 1n; // D
  }
}

/** How each flag with a value is read: returns the problem, or ''. @type {Record<string, (flags: MetaFlags, requests: Requests, start: number, end: number) => string>} */
const READERS = {
  b: (flags, { line }) => {
    flags.key = decodeKey(line.text(1));
    return flags.key.length > 0 ? '' : 'CLIENT_ERROR error decoding key';
  },
  N: (flags, requests, start, end) => readTime(flags, 'vivifyExptime', requests, start, end),
  T: (flags, requests, start, end) => readTime(flags, 'exptime', requests, start, end),
  R: (flags, requests, start, end) => readTime(flags, 'recacheAt', requests, start, end),
  F: (flags, { line }, start, end) => {
    flags.flags = readUint(line.bytes, start, end);
    return Number.isNaN(flags.flags) ? flags.problem || 'CLIENT_ERROR bad command line format' : '';
  },
  C: (flags, { line }, start, end) => {
    flags.cas = readCas(line.bytes, start, end);
    return Number.isNaN(flags.cas) ? BAD_TOKEN : '';
  },
  M: (flags, { line }, start, end) => {
    flags.mode = line.bytes.toString('latin1', start, end);
    return flags.mode.length === 1 ? '' : 'CLIENT_ERROR incorrect length for M token';
  },
  J: (flags, { line }, start, end) => {
    flags.initial = readBig(line.bytes, start, end) ?? -1n;
    return flags.initial < 0n ? 'CLIENT_ERROR invalid numeric initial value' : '';
  },
  D: (flags, { line }, start, end) => {
    flags.delta = readBig(line.bytes, start, end) ?? -1n;
    return flags.delta < 0n ? 'CLIENT_ERROR invalid numeric delta value' : '';
  },
};

/** @param {string} text @returns {Buffer} empty if it is not base64 */
export const decodeKey = (text) =>
  text.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(text)
    ? Buffer.from(text, 'base64')
    : Buffer.alloc(0);

/** @param {MetaFlags} flags @param {'exptime' | 'vivifyExptime' | 'recacheAt'} name @param {Requests} requests @param {number} start @param {number} end */
function readTime(flags, name, requests, start, end) {
  const exptime = readInt(requests.line.bytes, start, end);
  if (Number.isNaN(exptime)) return BAD_TOKEN;
  flags[name] = expiryOf(requests, exptime);
  return '';
}

/** @param {Requests} requests @param {number} first token that is a flag @returns {MetaFlags} `problem` is the answer if they are wrong */
export function readFlags(requests, first) {
  const flags = new MetaFlags();
  const { line } = requests;
  for (let token = first; token < line.count; token++) {
    const start = line.starts[token];
    const letter = String.fromCharCode(line.bytes[start]);
    if (line.bytes[start] >= LAST_FLAG || flags.has.has(letter))
      return problem(flags, 'CLIENT_ERROR duplicate flag');
    flags.has.add(letter);
    flags.list.push({ letter, token });
    const reader = READERS[letter];
    if (!reader && !WITHOUT_VALUE.includes(letter)) return problem(flags, 'CLIENT_ERROR invalid flag');
    const wrong = reader?.(flags, requests, start + 1, line.ends[token]);
    if (wrong) flags.problem = wrong;
  }
  return flags;
}

/** @param {MetaFlags} flags @param {string} text */
function problem(flags, text) {
  flags.problem = text;
  return flags;
}

/** @param {Requests} requests @param {MetaFlags} flags @returns {boolean} whether the opaque value is too long to return */
export const hasLongOpaque = ({ line }, { list }) =>
  list.some(({ letter, token }) => letter === 'O' && line.lengthOf(token) > MOST_OPAQUE);
