/*
 * The server's word that a load fleet may dial it. Without it drones dial nothing but their own machine.
 */
import { pathOf, response } from './wire.js';

const PATH = '/.well-known/holdfast-load';

/**
 * @param {(head: import('./wire.js').Head) => import('./wire.js').Decision} decide
 * @param {number} pingIntervalMs which drones measure lateness against
 * @returns {(head: import('./wire.js').Head) => import('./wire.js').Decision} that consents, and decides all else alike
 */
export function consenting(decide, pingIntervalMs) {
  const body = `${JSON.stringify({ consent: true, pingIntervalMs })}\n`;
  return (head) => {
    const decision = decide(head);
    const isAsked = 'refuse' in decision && decision.refuse === 404 && pathOf(head.target) === PATH;
    if (!isAsked) return decision;
    if (head.method !== 'GET' && head.method !== 'HEAD') return { refuse: 405 };
    return { answer: () => response(200, 'application/json', body, head.method === 'HEAD') };
  };
}
