/*
 * What is measured in a server of ours: a row for each method. Several rows may have the same key. Nothing in the package knows about
 * this table; a test compares it with the code.
 *
 * A plain function that a module exports can't be measured from outside, so a method that calls it is measured instead. What reads and
 * checks the body of a publication, for example, is part of `post` on the admin port; on the port of the hub, no row covers it.
 */

/**
 * @typedef {object} MeasuredMethod
 * @property {string} module from the root of the repository
 * @property {string} name of the class that it exports
 * @property {string} method
 * @property {string} key
 * @property {string} text what is measured
 */

// biome-ignore format: a table reads best with a row a line
/** @type {readonly MeasuredMethod[]} */
export const ROWS = [
  // The JS side of Hold.
  { module: 'transport/shards.js', name: 'Shards', method: 'takeEvents', key: 'events', text: 'takes what has happened from the native core, and handles it' },
  { module: 'transport/heads.js', name: 'Heads', method: 'answer', key: 'decide', text: 'answers a batch of request heads' },
  { module: 'transport/heads.js', name: 'Heads', method: 'parse', key: 'head', text: 'parses a head that it does not know yet' },
  { module: 'transport/heads.js', name: 'Heads', method: 'ask', key: 'ask', text: 'asks the policy about one head, and does what it says' },
  { module: 'transport/commands.js', name: 'Commands', method: 'hold', key: 'encode', text: 'encodes a command for the native core' },
  { module: 'transport/commands.js', name: 'Commands', method: 'respond', key: 'encode', text: 'encodes a command for the native core' },
  { module: 'transport/commands.js', name: 'Commands', method: 'publish', key: 'encode', text: 'encodes a command for the native core' },
  { module: 'transport/shards.js', name: 'Shards', method: 'flush', key: 'flush', text: 'passes a batch of commands to the native core' },
  { module: 'transport/door.js', name: 'Door', method: 'enter', key: 'door', text: 'takes in a request, without the native core' },
  { module: 'transport/streams.js', name: 'Streams', method: 'publish', key: 'deliver', text: 'writes a message to streams that are held in JS' },
  // The hub: subscriptions.
  { module: 'hub/index.js', name: 'Hub', method: 'decide', key: 'subscribe', text: 'decides about a request for a stream' },
  { module: 'hub/subscribers.js', name: 'Subscribers', method: 'of', key: 'subscriber', text: 'finds what a head asks for: known, or from its query and token' },
  { module: 'hub/access/index.js', name: 'Access', method: 'sessionOf', key: 'authorize', text: 'checks a token' },
  { module: 'hub/streams/openings.js', name: 'Openings', method: 'prepare', key: 'position', text: 'finds where a stream begins' },
  // The hub: publications.
  { module: 'hub/index.js', name: 'Hub', method: 'publisherOf', key: 'publish-request', text: 'checks who publishes, on the port of the hub' },
  { module: 'hub/protocol/posts.js', name: 'Posts', method: 'take', key: 'post', text: 'reads and stores publications that came to the admin port' },
  { module: 'hub/streams/core.js', name: 'HubCore', method: 'publish', key: 'publish', text: 'stores publications' },
  { module: 'broker/remote.js', name: 'RemoteBroker', method: 'append', key: 'append', text: 'passes publications to the broker in the primary' },
  { module: 'broker/server.js', name: 'BrokerServer', method: 'append', key: 'append-calls', text: 'takes publications from a worker, in the primary' },
  { module: 'broker/memory.js', name: 'MemoryBroker', method: 'store', key: 'store', text: 'puts publications in order, and keeps them' },
  { module: 'broker/disk/calls.js', name: 'Calls', method: 'call', key: 'disk', text: 'has the thread of the disk broker do something' },
  { module: 'broker/outbox.js', name: 'Outbox', method: 'sendSome', key: 'send-feed', text: 'sends publications to the workers' },
  { module: 'broker/remote.js', name: 'RemoteBroker', method: 'deliver', key: 'feed', text: 'takes a batch of publications from the primary' },
  { module: 'hub/streams/feed.js', name: 'Feed', method: 'publish', key: 'fan-out', text: 'passes a publication to the streams it is for' },
  { module: 'hub/streams/audience.js', name: 'Audience', method: 'channelsOf', key: 'match', text: 'finds the channels a publication goes to' },
  { module: 'hub/streams/window.js', name: 'Window', method: 'push', key: 'window', text: 'keeps a publication at hand for recovery' },
];

/** @param {readonly string[]} keys none for all @returns {readonly MeasuredMethod[]} */
export function rowsNamed(keys) {
  return keys.length === 0 ? ROWS : ROWS.filter(({ key }) => keys.includes(key));
}
