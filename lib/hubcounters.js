/*
 * The one table of what the hub of a worker counts. Snapshots, their sums and the types follow from it.
 */

/** Numbers. A gauge is the value now, a counter the total since the start. `limit`: requests that it refused. */
// biome-ignore format: a table reads best with one row per line
export const HUB_COUNTS = /** @type {const} */ ([
  { name: 'hubOpened', kind: 'counter', help: 'streams opened by the hub' },
  { name: 'hubPublished', kind: 'counter', help: 'publications that were new' },
  { name: 'hubDuplicates', kind: 'counter', help: 'publications whose id was known already' },
  { name: 'hubWaiting', kind: 'gauge', help: 'publications that wait in workers until there is room for them' },
  { name: 'hubRecoveries', kind: 'counter', help: 'streams opened with a cursor' },
  { name: 'hubEarliest', kind: 'counter', help: 'streams opened with a cursor that were told that publications may be lost (earliest)' },
  { name: 'hubReplayed', kind: 'counter', help: 'publications replayed to streams that were opened' },
  { name: 'hubTokensRefused', kind: 'counter', help: 'requests whose token was not valid' },
  { name: 'hubLimitedStreamsPerAddress', kind: 'counter', limit: 'max-streams-per-address', help: 'requests refused by a limit: max-streams-per-address' },
  { name: 'hubLimitedStreamsPerSubject', kind: 'counter', limit: 'max-streams-per-subject', help: 'requests refused by a limit: max-streams-per-subject' },
  { name: 'hubLimitedOpensPerAddress', kind: 'counter', limit: 'max-opens-per-address', help: 'requests refused by a limit: max-opens-per-address' },
  { name: 'hubLimitedTopicsPerStream', kind: 'counter', limit: 'max-topics-per-stream', help: 'requests refused by a limit: max-topics-per-stream' },
  { name: 'hubLimitedPublication', kind: 'counter', limit: 'max-publication', help: 'requests refused by a limit: max-publication' },
  { name: 'hubLimitedPresence', kind: 'counter', limit: 'max-presence', help: 'requests refused by a limit: max-presence' },
]);

/** @typedef {(typeof HUB_COUNTS)[number]} HubCountRow */
/** @typedef {HubCountRow['name']} HubCountName */
/** @typedef {Extract<HubCountRow, { kind: 'counter' }>['name']} HubCounterName those that only grow */
/** @typedef {Extract<HubCountRow, { limit: string }>['name']} HubLimitName */
/** @typedef {Record<HubCountName, number>} HubCounters */

/** @returns {HubCounters} all at 0 */
export function noHubCounters() {
  const pairs = HUB_COUNTS.map(({ name }) => [name, 0]);
  return /** @type {HubCounters} */ (Object.fromEntries(pairs));
}
