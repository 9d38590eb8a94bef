/*
 * What all formats with messages in JSON share. Pure, and the same as in native/core/src/dial/answer.rs.
 */
import { Answer, WELCOME } from '../answer.js';

const EARLIEST = 'earliest';
const POSITION = /^last-event-id:[ \t]*(.*?)[ \t]*$/im;
/** In the draft of Mercure, and in version 0.x. */
const GAP = /^(?:mercure-)?last-event-id:[ \t]*earliest[ \t]*$/im;

/** @typedef {import('../answer.js').Event} Event */
/** @typedef {{ isStrict: boolean, allowsMessages: boolean, isOfHub: boolean }} How */

export class JsonAnswer extends Answer {
  /** @param {How} how */
  constructor(how) {
    super(how);
    this.isOfHub = how.isOfHub;
    this.isParsed = how.isStrict || how.isOfHub;
    this.isGreeted = false;
  }

  /** What a head says about where the client is. @param {string} head @param {Event[]} events */
  notePosition(head, events) {
    const id = POSITION.exec(head)?.[1];
    if (GAP.test(head)) events.push({ what: 'gap' });
    if (id !== undefined && id !== EARLIEST) events.push(moved(id));
  }

  /** A message, or anything else that a hub says about itself. @param {string} text @param {Event[]} events */
  readJson(text, events) {
    this.readObject(objectIn(text), text, events);
  }

  /** @param {Record<string, unknown> | null} object @param {string} text for a sample @param {Event[]} events */
  readObject(object, text, events) {
    const [id, data, cursor] = ['id', 'data', 'cursor'].map((name) => textIn(object, name));
    if (!object || (data === null && !this.isOfHub)) {
      if (this.isStrict) this.fail(events, 'unexpected', text);
      return;
    }
    if (object.missing === true) events.push({ what: 'gap' });
    if (!this.isOfHub) this.readFirst(/** @type {string} */ (data), events);
    else if (id !== null || cursor !== null || data !== null)
      events.push({ what: 'block', block: { id: id ?? cursor, data, isOdd: false } });
  }

  /** The first message may be the welcome. @param {string} text @param {Event[]} events */
  readFirst(text, events) {
    const isWelcome = !this.isGreeted && text === WELCOME;
    this.isGreeted = true;
    if (!isWelcome) this.readMessage(text, events);
  }
}

/** @param {string} id @returns {Event} that moves the cursor */
export function moved(id) {
  return { what: 'block', block: { id, data: null, isOdd: false } };
}

/** @param {string} text @returns {Record<string, unknown> | null} null if it is no object */
export function objectIn(text) {
  try {
    const value = JSON.parse(text);
    return typeof value === 'object' && !Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
}

/** @param {Record<string, unknown> | null} object @param {string} name @returns {string | null} */
export function textIn(object, name) {
  const value = object?.[name];
  return typeof value === 'string' ? value : null;
}
