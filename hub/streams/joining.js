/*
 * Responses and connections of a server of the application that become streams. That takes a while, and publications go on, so a stream
 * first gets what was published meanwhile, and then joins the others in one step with the last of it.
 *
 *     beginning --> adopted by the Hold --> catchUp, as often as needed --> join
 */
import { HoldfastError } from '../../lib/errors.js';
import { FORMATS } from './formats.js';
import { NO_ROOM } from './limits.js';
import { labelsOf, retryMs } from './openings.js';

/** @typedef {import('./audience.js').Place} Place */
/** @typedef {import('./core.js').Entrance} Entrance */

export class Joining {
  /** @param {import('./core.js').HubCore} core */
  constructor(core) {
    this.core = core;
    /** Of those that are becoming streams, as long as they are open. @type {Set<number>} */
    this.ids = new Set();
  }

  /**
   * Makes a stream of a response that is open for writing and whose head was not sent yet.
   * @param {import('node:http').ServerResponse} response
   * @param {Place} place
   * @param {import('./openings.js').Beginning} beginning of this turn
   * @param {Entrance} how
   * @returns {Promise<number>} its id
   * @throws {HoldfastError} and the admission is not used
   */
  async adopt(response, place, beginning, how) {
    const encoding = how.format === 'ndjson' ? 'ndjsonUpdates' : 'updates';
    return this.becomeStream(place, beginning, how, () => this.core.hold.adopt(response, { encoding }));
  }

  /**
   * Has a response wait for its answer. Nothing was published between its beginning and this.
   * @param {import('node:http').ServerResponse} response @param {Place} place @param {number} waitMs @param {Entrance} how
   * @returns {Promise<void>}
   * @throws {HoldfastError} and the admission is not used
   */
  async adoptPoll(response, place, waitMs, how) {
    const { channels, session } = place;
    const { core } = this;
    core.audience.enter(place); // until its id is known
    try {
      const id = await core.hold.adopt(response, { encoding: 'pollUpdates', channels, waitMs });
      const labels = labelsOf(session, Date.now());
      if (labels) core.hold.label(id, labels);
      core.enter(id, place, how);
    } finally {
      core.audience.leave(place);
    }
  }

  /**
   * Makes a WebSocket of a request of a server of the application.
   * @param {readonly [import('node:http').IncomingMessage, import('node:stream').Duplex, Uint8Array]} event
   * @param {Place} place @param {import('./openings.js').Beginning} beginning of this turn
   * @param {Record<string, string>} headers @param {Entrance} how
   * @returns {Promise<number>} its id
   * @throws {HoldfastError} which the client was told; and the admission is not used
   */
  async upgrade([request, socket, head], place, beginning, headers, how) {
    const { dialect, address, mayPublish } = how;
    const { hold, sockets } = this.core;
    /** @type {import('./sockets.js').Socket} */
    const entry = { place, dialect, address, mayPublish };
    const tag = sockets.tagFor(entry);
    /** @type {() => void} */
    let open = () => {};
    entry.ready = new Promise((resolve) => {
      open = resolve;
    });
    try {
      return await this.becomeStream(place, beginning, how, async () => {
        const id = await hold.upgrade(request, socket, head, {
          encoding: 'websocketUpdates',
          headers,
          tag,
        });
        sockets.enter(id, entry); // what its client says until it has joined waits
        return id;
      });
    } finally {
      delete entry.ready;
      open();
    }
  }

  /**
   * @param {Place} place @param {import('./openings.js').Beginning} beginning of this turn @param {Entrance} how
   * @param {() => Promise<number>} adopt makes the stream
   * @returns {Promise<number>} its id
   */
  async becomeStream(place, { text, isWhole }, how, adopt) {
    const { hold, order, presence } = this.core;
    if (presence?.isFull) throw new HoldfastError('OVER_CAPACITY', NO_ROOM);
    const { last } = order.window;
    const id = await adopt();
    this.ids.add(id);
    if (!order.isOver) hold.write(id, text);
    const join = () => this.join(id, place, how);
    const { script } = FORMATS[how.format];
    const isIn =
      isWhole && !order.isOver && (await this.catchUp(id, place, script, last, join).catch(this.core.failed));
    if (isIn) return id;
    hold.end(id); // its client comes back for the rest
    this.ids.delete(id);
    this.core.dismiss(how.admission);
    return id;
  }

  /**
   * Writes what was published while a response became a stream: its client has had the head of the response since then.
   * @param {number} id @param {Place} place @param {import('./events.js').Script} script @param {number} after a sequence
   * @param {() => void} join called once the stream has got everything, in the same step
   * @returns {Promise<boolean>} false if it is too much for one response, or the order is over
   */
  async catchUp(id, place, script, after, join) {
    const { hold, order } = this.core;
    const { window, recovery } = order;
    for (let through = after; through < window.last; through = window.last) {
      const plan = recovery.planOf({ after: through, reported: undefined }, place, script);
      if (!recovery.isReady(plan)) await recovery.prepare(plan);
      if (order.isOver) return false;
      const { text, isWhole } = recovery.replay(plan, retryMs());
      hold.write(id, text);
      if (!isWhole) return false;
    }
    join();
    return true;
  }

  /** @param {number} id of a stream that has got everything so far @param {Place} place @param {Entrance} how */
  join(id, place, how) {
    const { hold } = this.core;
    if (!this.ids.delete(id)) return this.core.dismiss(how.admission); // the client has left meanwhile
    for (const channel of place.channels) hold.subscribe(id, channel);
    const labels = labelsOf(place.session, Date.now());
    if (labels) hold.label(id, labels);
    this.core.enter(id, place, how);
  }
}
