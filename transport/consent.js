/*
 * The server's consent to load from other machines (--accept-load). Without it, drones connect only to their own machine.
 */
import { pathOf } from './wire.js';

const PATH = '/.well-known/holdfast-load';

/** @typedef {typeof import('./wire.js').policy} ServerPolicy */

/**
 * @param {ServerPolicy} policy
 * @param {number} pingIntervalMs which drones measure lateness against
 * @returns {ServerPolicy} the same policy, plus an answer that consents
 */
export function withConsent({ headers, decide }, pingIntervalMs) {
  const answer = {
    headers: { 'Content-Type': 'application/json' },
    body: `${JSON.stringify({ consent: true, pingIntervalMs })}\n`,
  };
  return {
    headers,
    decide: (head) => {
      const decision = decide(head);
      const isAsked = 'refuse' in decision && decision.refuse === 404 && pathOf(head.target) === PATH;
      if (!isAsked) return decision;
      return head.method === 'GET' || head.method === 'HEAD' ? { answer } : { refuse: 405 };
    },
  };
}
