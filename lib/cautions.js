/*
 * What is risky, or has no effect, in the options about tokens: lines for the log, at the start. Pure.
 */
import { isIP } from 'node:net';
import { inRanges, LOOPBACK } from './addresses.js';

/** RFC 7518, section 3.2: a key for HS256 has at least as many bytes as the hash. */
const LEAST_SECRET_BYTES = 32;
const isLoopback = inRanges(LOOPBACK);

/** Options whose text may be a secret. */
const SECRETS = /** @type {const} */ ([
  ['--jwt-secret', 'jwtSecret'],
  ['--jwt-publisher-key', 'jwtPublisherKey'],
  ['--jwt-subscriber-key', 'jwtSubscriberKey'],
]);

/** @typedef {import('./config.js').Config} Config */

/** @param {Config} config @returns {string[]} without anything secret */
export function tokenCautions(config) {
  return [...secretCautions(config), ...urlCautions(config), ...originCautions(config), ...useless(config)];
}

/** @param {Config} config @returns {string[]} */
function secretCautions(config) {
  return SECRETS.flatMap(([flag, key]) => {
    const text = config[key];
    const bytes = Buffer.byteLength(text);
    if (text === '' || bytes >= LEAST_SECRET_BYTES) return [];
    return [
      `${flag} has only ${bytes} bytes: HS256 needs ${LEAST_SECRET_BYTES}, because a short secret can be guessed from a token`,
    ];
  });
}

/** @param {Config} config @returns {string[]} */
function urlCautions({ jwksUrl, jwtAudience }) {
  if (!jwksUrl) return [];
  return [
    ...(isExposed(new URL(jwksUrl))
      ? ['--jwks-url is http: someone on the network between could replace the keys; use https']
      : []),
    ...(jwtAudience
      ? []
      : [
          '--jwks-url without --jwt-audience: tokens that its issuer made for other services may be accepted',
        ]),
  ];
}

/** @param {URL} url @returns {boolean} */
function isExposed({ protocol, hostname }) {
  const host = hostname.replace(/^\[|\]$/g, '');
  return protocol === 'http:' && host !== 'localhost' && !(isIP(host) && isLoopback(host));
}

/** @param {Config} config @returns {string[]} about the admin port */
export function adminCautions({ adminPort, adminHost, adminToken }) {
  if (adminPort === 0 || adminToken === '' || adminHost === 'localhost' || isLoopback(adminHost)) return [];
  return [
    `--admin-host ${adminHost}: the admin port speaks http, so someone on the network between could read the token; use a proxy with TLS or a tunnel`,
  ];
}

/** @param {Config} config @returns {string[]} */
function originCautions({ publishOrigins }) {
  if (!publishOrigins.includes('*')) return [];
  return ['--publish-origins *: every website can publish with the cookies of its visitors'];
}

/** @param {Config} config @returns {string[]} */
function useless({
  jwtSecret,
  jwtPublisherKey,
  jwtSubscriberKey,
  jwksUrl,
  jwtIssuer,
  jwtAudience,
  publishOrigins,
}) {
  const hasKeys = Boolean(jwtSecret || jwtPublisherKey || jwtSubscriberKey || jwksUrl);
  const both = jwtPublisherKey && jwtSubscriberKey;
  return [
    ...(both && jwtSecret
      ? ['--jwt-secret has no effect: publishing and subscribing have keys of their own']
      : []),
    ...(both && jwksUrl
      ? ['--jwks-url has no effect: publishing and subscribing have keys of their own']
      : []),
    ...(!hasKeys && (jwtIssuer || jwtAudience || publishOrigins.length > 0)
      ? ['--jwt-issuer, --jwt-audience and --publish-origins have no effect without a key for tokens']
      : []),
  ];
}
