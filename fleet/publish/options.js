/*
 * The options of publishing, their checks, and the publisher they ask for.
 */
import { HoldfastError } from '../../lib/errors.js';
import { integer, listed, option } from '../../lib/options.js';
import { changedParams, defaultParams, PARAMS } from '../drone/params.js';
import { securityOf } from '../drone/tls/security.js';
import { hubsOf, signerFor } from '../drone/topics/subscription.js';
import { contentOf, paramsOf } from '../flags.js';
import { pairsOf } from '../texts.js';
import { ChannelPublisher } from './channel.js';
import { HubPublisher, hubUrl } from './hub.js';

const DAY_MS = 86_400_000;
const MOST_PER_SECOND = 1_000_000;
const MOST_BATCH = 1000;
const MOST_SIZE = 1_000_000;
/** Enough for NATS to choose another leader. */
const RETRY_S = 30;

/** @param {string} expected @param {RegExp} [scheme] @returns {import('../../lib/options.js').Kind} */
const urlKind = (expected, scheme = /^http:\/\//) => ({
  expected,
  word: 'URL',
  read: (given) => (scheme.test(given) && URL.canParse(given) ? given : undefined),
});
const ADMIN = urlKind("the URL of the server's admin port, as in http://127.0.0.1:8890");
const HUB = urlKind(
  'the URL of a hub, as in http://127.0.0.1:8890 or https://127.0.0.1:8888',
  /^https?:\/\//,
);
const { kind: TOKEN } = /** @type {import('../../lib/options.js').Option} */ (
  PARAMS.find(({ flag }) => flag === 'token')
);

// biome-ignore format: a table reads best with one row per line
export const PUBLISH_OPTIONS = [
  option('publish', 'publish', integer(1, MOST_PER_SECOND), 0, 'publications per second to the topics in turn, while holding, to check and measure their delivery'),
  option('publish-batch', 'publishBatch', integer(1, MOST_BATCH), '', 'publications per request, as a JSON array; 1: one, as a form (1)'),
  option('publish-size', 'publishSize', integer(1, MOST_SIZE), '', 'bytes of the data of each; at least about 80'),
  option('publish-token', 'publishToken', { ...TOKEN, read: (given) => TOKEN.read(contentOf(given) ?? '') }, '', 'token to publish with; without one, it is made from --token-secret'),
  option('publish-to', 'publishTo', listed(HUB), [], 'where to publish, such as the admin port, which needs no token; several hubs, separated by commas or repeated, share the connections (the targets)'),
  option('publish-retry', 'publishRetryS', integer(0, 3600), '', `seconds for which a publication that was not accepted is sent again, to the next hub if there are several; with an id, so that it is stored once (0; ${RETRY_S} with several hubs)`),
  option('publish-every', 'publishEveryMs', integer(1, DAY_MS), 0, 'ms between messages published to --channel while holding, to measure delivery'),
  option('admin', 'admin', ADMIN, 'http://127.0.0.1:8890', 'admin port of the server, for --publish-every'),
];

/** @param {Record<string, any>} values @throws {HoldfastError} BAD_OPTION */
export function checkPublishing(values) {
  const { publish, publishEveryMs } = values;
  const conflict = conflictIn(values);
  if (conflict) throw new HoldfastError('BAD_OPTION', conflict);
  if (publish > 0 || publishEveryMs > 0) return;
  for (const [key, flag] of Object.entries({
    publishBatch: 'publish-batch',
    publishSize: 'publish-size',
    publishToken: 'publish-token',
    publishTo: 'publish-to',
    publishRetryS: 'publish-retry',
  })) {
    if (String(values[key]) !== '') throw new HoldfastError('BAD_OPTION', `--${flag} needs --publish N`);
  }
}

/** @param {Record<string, any>} values @returns {string} '' if there is none */
function conflictIn({ publish, publishEveryMs, ...values }) {
  if (publish > 0 && publishEveryMs > 0)
    return '--publish (to topics) and --publish-every (to a channel) exclude each other';
  if (publishEveryMs > 0 && values['param-channel'] === '')
    return '--publish-every needs a --channel to publish to';
  if (publishEveryMs > 0 && values.target?.others)
    return '--publish-every publishes to one server, and channels are not shared: give one --target';
  if (publish > 0 && values['param-topic'] === '') return '--publish needs a --topic to publish to';
  return '';
}

/** @param {Record<string, any>} values @param {'local' | 'hosts' | 'ec2'} place of the drones */
export function publisherOf(values, place) {
  const { publish, publishEveryMs, admin, streams } = values;
  if (publish > 0) return hubPublisherOf(values, place);
  if (publishEveryMs === 0) return null;
  return new ChannelPublisher({ admin, channel: values['param-channel'], everyMs: publishEveryMs, streams });
}

/** @param {Record<string, any>} values @param {'local' | 'hosts' | 'ec2'} place */
function hubPublisherOf(values, place) {
  const { publish, publishBatch, publishSize, publishToken, publishTo, publishRetryS, streams } = values;
  const params = changedParams(defaultParams(), pairsOf(paramsOf(values)));
  const hubs = publishTo.length > 0 ? publishTo : hubsOf(params);
  const isSecure = hubs.some((/** @type {string} */ url) => url.startsWith('https:'));
  const retryS = publishRetryS === '' && hubs.length > 1 ? RETRY_S : Number(publishRetryS);
  return new HubPublisher({
    urls: hubs.map(hubUrl),
    security: isSecure ? securityOf({ ...params, tls: true }) : null,
    retryMs: retryS * 1000,
    topics: params.topic,
    streams,
    perSecond: publish,
    batch: publishBatch || 1,
    size: publishSize || 1,
    token: publishToken,
    signer: signerFor(params),
    // Only programs on the same machine share the monotonic clock.
    clock: place === 'local' ? 'monotonic' : 'wall',
  });
}
