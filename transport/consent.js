/*
 * What the server says to a load fleet: whether it consents to load from other machines (--accept-load), and its ping
 * interval. Without consent, drones dial it only on their own machine.
 *
 * Everyone gets the same answer, whatever address they ask from: behind a proxy on this machine, every client seems to be
 * local. The interval is no secret, because whoever holds a stream can measure it.
 */
import { pathOf } from './wire.js';

const PATH = '/.well-known/holdfast-load';

/** @typedef {import('./wire.js').ServerPolicy} ServerPolicy */

/**
 * @param {ServerPolicy} policy
 * @param {object} said
 * @param {boolean} said.consent whether drones on other machines may dial this server
 * @param {number} said.pingIntervalMs which drones measure lateness against
 * @param {boolean} [said.idlePings] whether pings are left out of streams that have got a message
 * @returns {ServerPolicy} the same policy, plus this answer
 */
export function withConsent({ headers, address, decide }, { consent, pingIntervalMs, idlePings }) {
  const answer = {
    headers: { 'Content-Type': 'application/json' },
    body: `${JSON.stringify({ consent, pingIntervalMs, ...(idlePings && { idlePings }) })}\n`,
  };
  return {
    headers,
    address,
    decide: (head) => {
      const decision = decide(head);
      const isAsked = 'refuse' in decision && decision.refuse === 404 && pathOf(head.target) === PATH;
      if (!isAsked) return decision;
      return head.method === 'GET' || head.method === 'HEAD' ? { answer } : { refuse: 405 };
    },
  };
}
