/*
 * The WebSockets of a hub. Their clients may publish, and ask for other topics later, so something is kept for each of them: 110 bytes with
 * Node 20, besides its place and its session, which equal requests share.
 *
 * When one moves to another process, its channels say what it has asked for, and its tag says which session it has. The sessions
 * themselves come before, as notes.
 */
import { hash } from 'node:crypto';
import { packed, unpacked } from '../access/packed.js';
import { selectorOfKey } from '../matching/selectors.js';
import { ALL, OURS, PUBLIC } from './audience.js';

/** How the tag of a WebSocket begins: no application has such ones. Then come the dialect, whether it may publish, and its session. */
const MARK = `${OURS}w`;
const TAG = /^(?<dialect>[80])(?<rights>[+-])(?<session>[\w-]*)$/;

/** @typedef {import('./audience.js').Place} Place */
/** @typedef {import('./audience.js').Audience} Audience */
/** @typedef {import('../access/grants.js').Session} Session */
/** @typedef {import('../access/grants.js').Dialect} Dialect */
/** @typedef {[session: string, session: import('../access/packed.js').Packed]} Note */

/**
 * @typedef {object} Socket
 * @property {Place} place where it is now
 * @property {Dialect} dialect
 * @property {string} address of its client; '' if it is unknown
 * @property {boolean} mayPublish if its token does
 * @property {Promise<void>} [ready] as long as it is being opened: until its topics are its place
 */

export class Sockets {
  /** @param {string} baseUrl of the hub */
  constructor(baseUrl) {
    this.baseUrl = baseUrl;
    /** @type {Map<number, Socket>} */
    this.byId = new Map();
    /** Sessions in use, by their names. @type {Map<string, { session: Session, sockets: number }>} */
    this.sessions = new Map();
    /** @type {WeakMap<Session, string>} */
    this.names = new WeakMap();
    /** What the process before has told us. @type {Map<string, Session>} */
    this.learned = new Map();
  }

  /** @param {number} id @param {Socket} socket */
  enter(id, socket) {
    this.byId.set(id, socket);
    const { session } = socket.place;
    if (!session) return;
    const name = this.nameOf(session);
    const known = this.sessions.get(name);
    if (known) known.sockets++;
    else this.sessions.set(name, { session, sockets: 1 });
  }

  /** @param {number} id of any stream that has ended */
  leave(id) {
    const socket = this.byId.get(id);
    if (!socket) return;
    this.byId.delete(id);
    const { session } = socket.place;
    const name = session ? this.nameOf(session) : '';
    const known = this.sessions.get(name);
    if (known && --known.sockets === 0) this.sessions.delete(name);
  }

  /** @param {Session} session @returns {string} the same for sessions that allow the same */
  nameOf(session) {
    const known = this.names.get(session);
    if (known !== undefined) return known;
    const name = hash('sha256', JSON.stringify(packed(session)), 'base64url').slice(0, 22);
    this.names.set(session, name);
    return name;
  }

  /** @param {number} id @returns {string | undefined} undefined if it is no WebSocket */
  tagOf(id) {
    const socket = this.byId.get(id);
    return socket && this.tagFor(socket);
  }

  /** @param {Socket} socket @returns {string} */
  tagFor({ place, dialect, mayPublish }) {
    const session = place.session ? this.nameOf(place.session) : '';
    return `${MARK}${dialect === 'legacy' ? '0' : '8'}${mayPublish ? '+' : '-'}${session}`;
  }

  /** @returns {Note[]} */
  notes() {
    return [...this.sessions].map(([name, { session }]) => [name, packed(session)]);
  }

  /** @param {readonly Note[]} notes of the hubs whose streams come next, instead of those before */
  learn(notes) {
    this.learned.clear();
    for (const [name, given] of notes) {
      const session = unpacked(given, this.baseUrl);
      if (session) this.learned.set(name, session);
    }
  }

  /**
   * @param {{ tag?: string, channels: readonly string[], address: string }} stream that comes from another process @param {Audience} audience
   * @returns {Socket | null | undefined} undefined if it is no WebSocket; null if it can't go on
   */
  taken({ tag = '', channels, address }, audience) {
    if (!tag.startsWith(MARK)) return undefined;
    const parts = TAG.exec(tag.slice(MARK.length))?.groups;
    const session = parts && (parts.session === '' ? null : this.learned.get(parts.session));
    if (!parts || session === undefined) return null;
    const keys = channels.filter((one) => one.startsWith(PUBLIC) || one.startsWith(ALL));
    const selectors = keys.flatMap((one) => selectorOfKey(one.slice(PUBLIC.length), this.baseUrl) ?? []);
    if (selectors.length < keys.length) return null;
    return {
      place: audience.placeOf(selectors, session),
      dialect: parts.dialect === '0' ? 'legacy' : 'draft',
      address,
      mayPublish: parts.rights === '+',
    };
  }
}
