/*
 * Sessions as JSON, for another process that takes streams over.
 */
import { selectorOfKey } from '../matching/selectors.js';
import { Session } from './grants.js';

/** @typedef {import('../matching/selectors.js').Selector} Selector */

/**
 * @typedef {object} Packed
 * @property {string[]} publish keys of selectors
 * @property {string[]} subscribe
 * @property {{ selectors: string[], payload: unknown }[]} details
 * @property {import('./grants.js').Dialect} dialect
 * @property {number | null} expiresAtMs null if never
 * @property {number} subject
 * @property {number} token
 */

/** @param {Session} session @returns {Packed} */
export function packed({ publish, subscribe, details, dialect, expiresAtMs, subject, token }) {
  return {
    publish: keysOf(publish),
    subscribe: keysOf(subscribe),
    details: details.map(({ selectors, payload }) => ({ selectors: keysOf(selectors), payload })),
    dialect,
    expiresAtMs: Number.isFinite(expiresAtMs) ? expiresAtMs : null,
    subject,
    token,
  };
}

/** @param {Packed} given @param {string} baseUrl of the hub @returns {Session | null} null if it has a selector that we don't know */
export function unpacked({ publish, subscribe, details, expiresAtMs, ...facts }, baseUrl) {
  /** @type {(keys: string[]) => Selector[]} */
  const selectorsOf = (keys) =>
    keys.map((key) => {
      const selector = selectorOfKey(key, baseUrl);
      if (!selector) throw UNKNOWN;
      return selector;
    });
  try {
    const grants = {
      publish: selectorsOf(publish),
      subscribe: selectorsOf(subscribe),
      details: details.map(({ selectors, payload }) => ({ selectors: selectorsOf(selectors), payload })),
    };
    return new Session(grants, {
      ...facts,
      expiresAtMs: expiresAtMs ?? Number.POSITIVE_INFINITY,
      audiences: null,
    });
  } catch (error) {
    if (error === UNKNOWN) return null;
    throw error;
  }
}

const UNKNOWN = new Error('an unknown selector');

/** @param {readonly Selector[]} selectors */
function keysOf(selectors) {
  return selectors.map(({ key }) => key);
}
