/*
 * Carries out what clients of WebSockets say (requests.js). Each request gets one answer, in the order in which they came:
 *
 *     {"ref":1,"cursor":"…"}              subscribe, unsubscribe: where the stream is now; "missing":true if what followed `after` may be lost
 *     {"ref":1,"more":"…"}                subscribe: there is more than fits; the client asks again, with `after` as given here
 *     {"ref":1,"id":"…"}, {"ids":[…]}     publish: it is stored
 *     {"ref":1,"error":"…","status":400}
 *
 * Publications that follow each other are stored together; a client's other requests wait for those before them, and those after wait for
 * them. What waits is bounded: beyond it, requests are refused at once, before the others are answered.
 */
import { RequestError } from '../../lib/router.js';
import { Slices } from '../../lib/slices.js';
import { mayPublish } from '../access/grants.js';
import { LimitError } from '../streams/limits.js';
import { LINES } from '../streams/lines.js';
import { missing, placed } from './beginnings.js';
import { draftOf, draftsOf } from './drafts.js';
import { requestErrorOf } from './protocol.js';
import { objectIn, refOf, saidIn, selectorsIn } from './requests.js';
import { checkCount } from './subscription.js';

/** Requests of one client that may wait, and bytes of those of all clients. */
const MOST_WAITING = 1000;
const MOST_WAITING_BYTES = 16_777_216;
/** What a client gets at once of what it asks for later: it fits into a backlog, so one that doesn't read is slow. */
const MOST_PART_BYTES = 32_768;

/** @typedef {import('../index.js').Hub} Hub */
/** @typedef {import('../streams/sockets.js').Socket} Socket */
/** @typedef {import('../matching/selectors.js').Selector} Selector */
/** @typedef {Record<string, unknown>} Answer */

/**
 * A client that has requests waiting.
 * @typedef {object} Talk
 * @property {number} id of the stream
 * @property {Socket} socket
 * @property {number} waiting requests
 * @property {Promise<void> | undefined} gate resolves when what publications have to wait for is answered
 * @property {Promise<void>} last resolves when all so far are answered
 */

const DONE = Promise.resolve();

export class Conversations {
  /** @param {Hub} hub */
  constructor(hub) {
    this.hub = hub;
    /** By the id of the stream. @type {Map<number, Talk>} */
    this.talks = new Map();
    /** Bytes of requests that wait. */
    this.bytes = 0;
    this.slices = new Slices(1);
  }

  /**
   * A client has said something.
   * @param {number} id of a stream @param {string} text
   * @returns {boolean} false if it is no WebSocket of the hub
   */
  hear(id, text) {
    const socket = this.hub.core.sockets.byId.get(id);
    if (!socket) return false;
    const { ready } = socket;
    const known = this.talks.get(id);
    const { ref, said, problem } = read(text, this.hub.rules.mostBodyBytes);
    if (!known && !ready && !said) {
      this.reply(id, ref, this.problem(problem));
      return true;
    }
    const talk = known ?? { id, socket, waiting: 0, gate: ready, last: ready ?? DONE };
    const excess = this.excess(talk, text.length);
    if (excess) this.reply(id, ref, this.problem(excess));
    else void this.take(talk, text.length, ref, said ?? problem);
    return true;
  }

  /** @param {Talk} talk @param {number} size of another request @returns {RequestError | undefined} why it may not wait, too */
  excess({ waiting }, size) {
    if (waiting >= MOST_WAITING) return tooMany(`of yours wait to be answered: at most ${MOST_WAITING}`, 429);
    if (this.bytes + size > MOST_WAITING_BYTES) return tooMany('wait to be answered', 503);
    return undefined;
  }

  /**
   * @param {Talk} talk @param {number} size of the text @param {import('./requests.js').Ref} ref
   * @param {import('./requests.js').Said | RequestError} said
   */
  async take(talk, size, ref, said) {
    const { id, gate, last } = talk;
    const isFirst = talk.waiting === 0 && gate === undefined;
    const isPublication = said instanceof Error || said.kind === 'publish';
    const attempt = () => this.attempt(talk, said);
    this.talks.set(id, talk);
    talk.waiting++;
    this.bytes += size;
    // A publication need not wait for those before it: the broker keeps their order.
    const before = isPublication ? gate : isFirst ? undefined : last;
    const begun = before ? before.then(attempt) : attempt();
    talk.last = this.finish(talk, begun, isFirst ? undefined : last, ref);
    if (!isPublication) talk.gate = talk.last;
    await talk.last;
    this.bytes -= size;
    if (--talk.waiting === 0) this.talks.delete(id);
  }

  /** @param {Talk} talk @param {Promise<Answer>} begun @param {Promise<void> | undefined} before @param {import('./requests.js').Ref} ref */
  async finish({ id }, begun, before, ref) {
    const answer = await begun;
    await before;
    this.reply(id, ref, answer);
  }

  /** @param {Talk} talk @param {import('./requests.js').Said | RequestError} said @returns {Promise<Answer>} never rejects */
  async attempt(talk, said) {
    try {
      if (said instanceof Error) throw said;
      this.checkSession(talk.socket);
      if (said.kind === 'publish') return await this.publish(talk.socket, said.what);
      const selectors = await this.selectorsOf(talk.socket, said.what);
      if (said.kind === 'subscribe') return await this.subscribe(talk, selectors, said.after);
      return this.unsubscribe(talk, selectors);
    } catch (error) {
      return this.problem(error);
    }
  }

  /** @param {unknown} error @returns {Answer} */
  problem(error) {
    const known = requestErrorOf(error);
    if (!known) this.hub.onError(error);
    const { counts } = this.hub.core;
    if (known instanceof LimitError) counts[known.counter]++;
    else if (known?.status === 413) counts.hubLimitedPublication++;
    return known
      ? { error: known.message, status: known.status }
      : { error: 'the hub failed to answer', status: 500 };
  }

  /** @param {number} id @param {import('./requests.js').Ref} ref @param {Answer} answer */
  reply(id, ref, answer) {
    this.hub.core.hold.reply(id, `${JSON.stringify({ ref, ...answer })}\n`);
  }

  /** @param {Socket} socket @param {unknown} what @returns {Promise<Selector[]>} */
  selectorsOf({ dialect }, what) {
    return this.inTurn(() => selectorsIn(what, dialect, this.hub.rules));
  }

  /** What takes long is done one after the other, a slice at a time. @template T @param {() => T} work @returns {Promise<T>} */
  inTurn(work) {
    return this.slices.run(async () => {
      await this.slices.pause();
      return work();
    });
  }

  /** The stream ends about then too. @param {Socket} socket @throws {RequestError} 401 */
  checkSession({ place: { session } }) {
    if (session && session.expiresAtMs <= Date.now()) throw this.access.refusal('invalid', NOBODY);
  }

  /** It is open: streams are. */
  get access() {
    return /** @type {import('../access/index.js').Access} */ (this.hub.access);
  }

  /** @param {Socket} socket @param {unknown} what a publication, or a list of them @returns {Promise<Answer>} once they are stored */
  async publish({ place: { session }, mayPublish: isTrusted }, what) {
    const { access, hub } = this;
    access.checkPublishing();
    if (session === null) throw access.insufficient(NOBODY, null);
    if (!isTrusted) throw access.refusal('origin', NOBODY);
    const isList = Array.isArray(what);
    const drafts = await this.inTurn(() => {
      const list = isList ? draftsOf(what, hub.rules) : [draftOf(what, hub.rules)];
      for (const { topics } of list)
        if (!mayPublish(session, topics)) throw access.insufficient(NOBODY, session);
      return list;
    });
    const ids = (await hub.core.publish(drafts)).map(({ id }) => id);
    return isList ? { ids } : { id: ids[0] };
  }

  /**
   * What it has missed, and its new topics, come in one step: so nothing of them is lost.
   * @param {Talk} talk @param {readonly Selector[]} wanted @param {string | undefined} after
   * @returns {Promise<Answer>}
   */
  async subscribe({ id, socket }, wanted, after) {
    const { core, rules } = this.hub;
    core.limits?.open(socket.address);
    const { selectors, session } = socket.place;
    const fresh = wanted.filter(({ key }) => !selectors.some((one) => one.key === key));
    checkCount(selectors.length + fresh.length, rules.mostSelectors);
    core.checkPresence();
    const part = core.placeOf(after === undefined ? fresh : wanted, session);
    const opening = await core.prepare(after, part, LINES, MOST_PART_BYTES);
    if (!core.sockets.byId.has(id)) return {}; // it has ended meanwhile
    const beginning = placed(opening.begin());
    if (beginning.text !== '') core.hold.reply(id, beginning.text);
    const lost = missing(after, opening.reported);
    if (!beginning.isWhole) return { more: beginning.end, ...lost };
    if (fresh.length > 0) core.move(id, socket, [...selectors, ...fresh]);
    return { cursor: beginning.end, ...lost };
  }

  /** @param {Talk} talk @param {readonly Selector[]} unwanted @returns {Answer} */
  unsubscribe({ id, socket }, unwanted) {
    const { core } = this.hub;
    const keys = unwanted.map(({ key }) => key);
    const { selectors } = socket.place;
    const rest = selectors.filter(({ key }) => !keys.includes(key));
    if (rest.length < selectors.length && core.sockets.byId.has(id)) core.move(id, socket, rest);
    return { cursor: core.cursor };
  }
}

/** A request of which only its session is known. @type {import('../access/index.js').Request} */
const NOBODY = { method: 'POST', headers: {} };

/** @param {string} text @param {number} mostBytes of one that publishes @returns {{ ref?: import('./requests.js').Ref, said?: import('./requests.js').Said, problem: RequestError }} */
function read(text, mostBytes) {
  /** @type {import('./requests.js').Ref} */
  let ref;
  try {
    const given = objectIn(text);
    ref = refOf(given);
    const said = saidIn(given);
    if (said.kind === 'publish') checkBytes(text, mostBytes);
    return { ref, said, problem: NONE };
  } catch (error) {
    if (error instanceof RequestError) return { ref, problem: error };
    throw error;
  }
}

const NONE = new RequestError(500, '');

/** @param {string} text @param {number} most @throws {RequestError} 413 */
function checkBytes(text, most) {
  const bytes = Buffer.byteLength(text);
  if (bytes > most) throw new RequestError(413, `got ${bytes} bytes, expected ${most} at most`);
}

/** @param {string} which @param {number} status */
function tooMany(which, status) {
  return new RequestError(status, `too many requests ${which}; try again later`);
}
