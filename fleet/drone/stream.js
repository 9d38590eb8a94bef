/*
 * One stream of the plain dialer, from dialling to its end.
 */
import { Answer } from './answer.js';
import { formats, topics } from './optional.js';
import { Pings } from './pings.js';

/** @typedef {import('./dial.js').Target} Target */
/** @typedef {import('./dial.plain.js').PlainDialer} Owner */

export class Stream {
  /** @param {Owner} dialer @param {Target} target @param {number} place @param {number} server its index */
  constructor(dialer, target, place, server) {
    this.dialer = dialer;
    this.target = target;
    this.place = place;
    this.server = server;
    this.answer =
      formats?.answerOf(target) ??
      (topics && target.subscription ? new topics.HubAnswer(target) : new Answer(target));
    this.begunMs = performance.now();
    this.hasFirstByte = false;
    this.isOpen = false;
    this.hasEnded = false;
    this.pings = new Pings(target.pingIntervalMs);
    /** What it ends with if its socket closes. @type {import('./causes.js').Cause} */
    this.cause = 'closed';
  }
}

/**
 * Each pair of a source and a destination is used equally often.
 * @param {Target} target @param {number} server its index @param {number} number of the opening
 */
export function pairOf({ servers, sources }, server, number) {
  const { addresses, ports } = servers[server];
  const turn = Math.floor(number / servers.length);
  const round = Math.floor(turn / Math.max(sources.length, 1));
  return {
    host: addresses[Math.floor(round / ports.length) % addresses.length],
    port: ports[round % ports.length],
    localAddress: sources.length > 0 ? sources[turn % sources.length] : undefined,
    noDelay: true,
  };
}

/** Where there are no topics, streams need no places. @type {Pick<import('./topics/subscribers.js').Subscribers, 'take' | 'leave' | 'forget' | 'at' | 'setTokens' | 'requestFor'>
 * & { visits: Pick<import('./topics/servers.js').Visits, 'next' | 'count' | 'counts'> }} */
export const NO_SUBSCRIBERS = {
  take: () => 0,
  leave() {},
  forget() {},
  at() {},
  setTokens() {},
  requestFor: ({ request }) => request,
  visits: { next: () => 0, count: () => false, counts: () => [] },
};
