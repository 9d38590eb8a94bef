/*
 * The options of the server (lib/config.js) as those of its hub: in each worker, and in the primary.
 */
import { cachedBy, NOWHERE, PATH, rulesOf, urlOf } from './settings.js';

/** What each worker has at hand of the history, for clients that come back: a part of it, and how much at least and at most. */
const WINDOW_SHARE = 1 / 4;
const LEAST_WINDOW_BYTES = 16_777_216;
const MOST_WINDOW_BYTES = 67_108_864;

/** @typedef {import('../lib/config.js').Config} Config */

/** @param {Config} config @returns {Omit<import('./settings.js').HubOptions, 'hold'>} for the hub of a worker, but for presence */
export function hubOptions(config) {
  const { anonymous, corsOrigins, publishOrigins, cacheTopics, mercureLegacy, proxies } = config;
  const { maxStreamsPerAddress, maxStreamsPerSubject, maxOpensPerAddress } = config;
  const jwt = {
    secret: config.jwtSecret,
    publisherKey: config.jwtPublisherKey,
    subscriberKey: config.jwtSubscriberKey,
    jwksUrl: config.jwksUrl,
    issuer: config.jwtIssuer,
    audience: config.jwtAudience,
    cookie: config.jwtCookie,
  };
  return {
    jwt,
    anonymous,
    corsOrigins,
    publishOrigins,
    cacheTopics,
    legacy: mercureLegacy === 'on',
    windowBytes: windowBytesOf(config),
    maxBodyBytes: config.maxPublicationBytes,
    maxSelectors: config.maxTopicsPerStream,
    maxStreamsPerAddress,
    maxStreamsPerSubject,
    maxOpensPerAddress,
    proxies,
  };
}

/** @param {Pick<Config, 'historyBytes'>} config @returns {number} */
export function windowBytesOf({ historyBytes }) {
  return Math.min(Math.max(historyBytes * WINDOW_SHARE, LEAST_WINDOW_BYTES), MOST_WINDOW_BYTES);
}

/** @param {Config} config @returns {(topic: string) => boolean} for the broker of the server */
export function cachedIn(config) {
  return cachedBy(config.cacheTopics, baseUrlIn(config));
}

/** @param {Config} config @returns {import('./settings.js').Rules} for publications on the admin port */
export function rulesIn(config) {
  return rulesOf({ maxBodyBytes: config.maxPublicationBytes }, baseUrlIn(config));
}

/** @param {Config} config */
function baseUrlIn({ jwtAudience }) {
  return urlOf(jwtAudience) || NOWHERE + PATH;
}

/** @param {Config} config @returns {import('../broker/index.js').NatsOptions | null} null without NATS */
export function natsIn({ nats, natsStream, natsReplicas, natsCreds, natsCa, natsCert, natsCertKey }) {
  if (nats.length === 0) return null;
  return {
    servers: nats,
    stream: natsStream,
    replicas: natsReplicas,
    credentials: natsCreds,
    ca: natsCa,
    cert: natsCert,
    certKey: natsCertKey,
  };
}
