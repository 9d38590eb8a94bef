/*
 * The parameters of a drone that have to do with topics of a hub. One table.
 */
import { choice, FLAG, integer, option, repeated } from '../../../lib/options.js';
import { shortened } from '../tls/params.js';
import { MOST_SERVERS, namesOf, serverIn, splitServers } from './servers.js';
import { templateOf } from './template.js';
import { problemOf } from './tokens.js';

const MOST_TOPICS = 100;
const MOST_TOPIC = 1024;
const MOST_AWAY = 10_000_000;
const MOST_TTL_S = 100_000_000;
const HIDDEN = '(hidden)';

/**
 * @typedef {object} TopicParams
 * @property {string[]} others more servers, each 'host:ports'
 * @property {string[]} topic templates of topics
 * @property {boolean} mercureLegacy
 * @property {string} token '' for none
 * @property {string} tokenSecret '' for none
 * @property {boolean} tokenShared
 * @property {import('./tokens.js').Dialect} tokenDialect
 * @property {string} tokenClaims JSON; '' for none
 * @property {number} tokenTtl seconds
 * @property {number} away streams out of n that are not to be open
 * @property {number} first the number of its first stream, in the whole fleet
 * @property {number} step from one of its streams to the next
 */

/** 'room/{n%100}' @type {import('../../../lib/options.js').Kind} */
const TOPIC = {
  expected:
    'a topic without quotes, backslashes and control characters, with {n}, {n%K} and {n/K} as its only braces, and not *',
  word: 'TOPIC',
  read: (given) => {
    const isPlain = given.length <= MOST_TOPIC && !/["\\\p{Cc}\p{Cf}]/u.test(given);
    return isPlain && given !== '' && given !== '*' && templateOf(given) ? given : undefined;
  },
};

/** @type {import('../../../lib/options.js').Kind} */
const SERVERS = {
  expected: `hosts with their ports, as in 10.0.0.6:8888,10.0.0.7:8888; at most ${MOST_SERVERS - 1}`,
  word: 'HOST:PORTS,…',
  read: (given) => {
    const texts = splitServers(given);
    return texts.length < MOST_SERVERS && texts.every((text) => serverIn(text)) ? texts : undefined;
  },
};

/** What a header can contain. @type {import('../../../lib/options.js').Kind} */
const TOKEN = {
  expected: 'a token, such as a JWT',
  word: 'JWT',
  read: (given) => (/^[\x21-\x7e]{1,8192}$/.test(given) ? given : undefined),
};

/** @type {import('../../../lib/options.js').Kind} */
const SECRET = {
  expected: 'the secret of the server, or a private key in PEM',
  word: 'SECRET',
  read: (given) => (given !== '' && problemOf(given) === '' ? given : undefined),
};

/** @type {import('../../../lib/options.js').Kind} */
const CLAIMS = {
  expected: 'a JSON object, as in {"aud":"https://example.com/hub"}',
  word: 'JSON',
  read: (given) => (isObject(given) ? given : undefined),
};

// biome-ignore format: a table reads best with one row per line
export const TOPIC_PARAMS = [
  option('others', 'others', SERVERS, [], 'more servers, such as the other nodes of a hub: each gets its share of the streams, and a stream that comes back takes the next one'),
  option('topic', 'topic', repeated(TOPIC), [], 'topic of a hub to subscribe to, repeatable; {n} is the number of the stream in the fleet, from 0, {n%100} and {n/100} are derived from it. Publications of the fleet are checked: each must arrive once, in order'),
  option('mercure-legacy', 'mercureLegacy', FLAG, false, 'subscribe with topic= as in Mercure 0.x, not with match='),
  option('token', 'token', TOKEN, '', 'token that all streams send to the hub'),
  option('token-secret', 'tokenSecret', SECRET, '', 'secret, or private key in PEM, to make a token for each stream, for exactly its topics; commands of the fleet read it from @FILE'),
  option('token-shared', 'tokenShared', FLAG, false, 'make one token for all streams, for all topics'),
  option('token-dialect', 'tokenDialect', choice('0.x', 'draft-08'), '0.x', 'claims of the tokens that are made: those of Mercure 0.x, or of the draft'),
  option('token-claims', 'tokenClaims', CLAIMS, '', 'more claims for the tokens that are made, such as aud and iss'),
  option('token-ttl', 'tokenTtl', integer(1, MOST_TTL_S), 86_400, 'seconds that the tokens that are made are valid for'),
  option('away', 'away', integer(0, MOST_AWAY), 0, 'streams out of n to cut off, and to keep away until this is lower: then they come back with their cursors'),
  option('first', 'first', integer(0, 100_000_000), 0, 'number of the first stream of this drone in the fleet'),
  option('step', 'step', integer(1, 100_000), 1, 'from the number of one stream of this drone to that of the next'),
];

/** @param {import('../params.js').Params} params @returns {import('../params.js').Params} as others may see them */
export function withoutSecrets(params) {
  const { token, tokenSecret } = params;
  return { ...shortened(params), token: token && HIDDEN, tokenSecret: tokenSecret && HIDDEN };
}

/** @param {import('../params.js').Params} params @returns {string} why they can't be used together; '' if they can */
export function conflictIn(params) {
  const { topic, channel, token, tokenSecret, tokenShared, mercureLegacy } = params;
  const hasTopics = topic.length > 0;
  const twice = namesOf(params).find((name, i, names) => names.indexOf(name) < i);
  if (twice) return `${twice} was given twice: expected different servers`;
  if (topic.length > MOST_TOPICS)
    return `topic was given ${topic.length} times: expected at most ${MOST_TOPICS}`;
  if (hasTopics && channel !== '') return 'topic and channel exclude each other: streams have either';
  if (token !== '' && tokenSecret !== '') return 'token and token-secret exclude each other: give one';
  if (tokenShared && tokenSecret === '') return 'token-shared needs a token-secret to make the token with';
  if (hasTopics) return '';
  if (token !== '')
    return 'token needs a topic: it is what streams send to a hub; control-token protects a drone';
  if (tokenSecret !== '') return 'token-secret needs a topic';
  return mercureLegacy ? 'mercure-legacy needs a topic' : '';
}

/** @param {string} text @returns {boolean} */
function isObject(text) {
  try {
    const value = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}
