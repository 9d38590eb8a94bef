/*
 * `holdfast token`: makes a token for publishers and subscribers, signed with the secret of the server (HS256).
 */
import { HoldfastError } from '../lib/errors.js';
import { optionLines } from '../lib/help.js';
import { option, readOptions, repeated, secret, text } from '../lib/options.js';
import { DETAIL_TYPE } from './access/grants.js';

/** @type {import('../lib/options.js').Kind} */
const PERIOD = {
  expected: 'a number and s, m, h, d or y, such as 12h',
  word: 'PERIOD',
  read: (given) => (/^\d{1,6}[smhdy]$/.test(given) ? given : undefined),
};
const TOPIC = repeated(text('TOPIC', 'a topic, a URI template, or * for all'));

// biome-ignore format: a table reads best with one row per line
const OPTIONS = [
  option('jwt-secret', 'jwtSecret', secret('SECRET'), '', 'secret that the server has too'),
  option('publish', 'publish', TOPIC, [], 'topic to which it may publish: exact, a URI template, or * for all; can be repeated'),
  option('subscribe', 'subscribe', TOPIC, [], 'topic whose private publications it may read; can be repeated'),
  option('subject', 'subject', text('NAME', 'a name'), '', 'whose token it is (sub), for limits and for /revoke'),
  option('audience', 'audience', text('URL', 'a URL'), '', 'URL of the hub (aud): makes a token of draft-08, as for --mercure-legacy off, whose topics are exact or *'),
  option('issuer', 'issuer', text('ISSUER', 'an issuer'), '', 'who made it (iss), for servers with --jwt-issuer'),
  option('expires', 'expires', PERIOD, '1h', 'for how long it is valid'),
];

/** @typedef {{ jwtSecret: string, publish: readonly string[], subscribe: readonly string[], subject: string, audience: string, issuer: string, expires: string }} Wish */

/**
 * @param {string[]} args after `token`
 * @param {Record<string, string | undefined>} env
 * @returns {Promise<string>} what it prints: the token, or the help
 * @throws {HoldfastError} BAD_OPTION
 */
export async function tokenText(args, env) {
  const { values, help } = readOptions(OPTIONS, args, env);
  return help ? helpText() : `${await tokenFor(/** @type {Wish} */ (values))}\n`;
}

/** @param {Wish} wish @returns {Promise<string>} a JWT */
async function tokenFor(wish) {
  const { jwtSecret, publish, subscribe, subject, audience, issuer, expires } = wish;
  if (!jwtSecret)
    throw new HoldfastError('BAD_OPTION', 'no secret given: use HOLDFAST_JWT_SECRET, or --jwt-secret @FILE');
  if (publish.length + subscribe.length === 0)
    throw new HoldfastError(
      'BAD_OPTION',
      'the token would allow nothing: give --publish TOPIC, --subscribe TOPIC or both',
    );
  const { SignJWT } = await import('jose'); // 3 MB that a server has no use for
  const typ = audience ? { typ: 'at+jwt' } : {};
  const token = new SignJWT(claimsOf(wish)).setProtectedHeader({ alg: 'HS256', ...typ });
  if (subject) token.setSubject(subject);
  if (audience) token.setAudience(audience);
  if (issuer) token.setIssuer(issuer);
  return token.setIssuedAt().setExpirationTime(expires).sign(new TextEncoder().encode(jwtSecret));
}

/** Those of draft-08 are valid for one hub, those of 0.x for every one with the secret. @param {Wish} wish */
function claimsOf({ publish, subscribe, audience }) {
  if (!audience) return { mercure: { publish, subscribe } };
  const details = Object.entries({ publish, subscribe })
    .filter(([, topics]) => topics.length > 0)
    .map(([action, topics]) => ({
      type: DETAIL_TYPE,
      actions: [action],
      topics: topics.map((match) => ({ match })),
    }));
  return { authorization_details: details };
}

/** @returns {string} */
function helpText() {
  return `Usage: holdfast token [options]

Prints a token for publishers or subscribers of a server with the same secret (--jwt-secret).

${optionLines(OPTIONS)}

  export HOLDFAST_JWT_SECRET='a secret of at least thirty-two bytes'
  TOKEN=$(npx holdfast token --publish '*')
`;
}
