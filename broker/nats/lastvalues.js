/*
 * The last publication of each cached topic, beyond the history: in a second stream, which JetStream fills from the first one by
 * itself. A node reads it when its copy begins. It belongs to one epoch, which is in its description: the next one begins without it.
 *
 *     <stream>  --publications on cached topics-->  <stream>_LAST: the last one of each subject
 */
import { setTimeout as after } from 'node:timers/promises';
import { DiscardPolicy, StorageType } from '@nats-io/jetstream';
import { messageOf } from '../../lib/errors.js';
import { MOST_CACHED_BYTES, MOST_CACHED_TOPICS } from '../limits.js';
import { numbered } from '../order.js';
import { cachedSubjectsOf, decode } from './messages.js';
import { Older } from './older.js';
import { identityOf, infoOf } from './stream.js';

/** Messages that are read at a time. */
const PAGE = 500;
/** How long JetStream may take to fill a new stream, and how often we look. */
const FILL_MS = 3000;
const LOOK_MS = 50;
const SOURCE = 'Nats-Stream-Source';

/** @typedef {import('../index.js').Publication} Publication */
/** @typedef {import('./stream.js').Info} Info */

export class LastValues {
  /**
   * @param {object} options
   * @param {import('./link.js').Link} options.link
   * @param {import('@nats-io/jetstream').JetStreamManager} options.manager
   * @param {import('./stream.js').Wanted} options.wanted
   * @param {(line: string) => void} options.onNote
   */
  constructor({ link, manager, wanted, onNote }) {
    this.link = link;
    this.manager = manager;
    this.wanted = wanted;
    this.onNote = onNote;
  }

  /**
   * @param {{ epoch: number, last: number }} order
   * @returns {Promise<Publication[]>} in order, up to `last`; none if they can't be read, which is noted
   */
  async read({ epoch, last }) {
    try {
      const info = await this.open(epoch);
      /** @type {Publication[]} */
      const found = [];
      for await (const { data, time, header } of this.messagesIn(info)) {
        const sequence = Number(header.get(SOURCE).split(' ')[1]);
        const draft = sequence <= last ? decode(data) : null;
        if (draft) found.push(numbered(draft, sequence, time.getTime()));
      }
      return found.sort((one, other) => one.sequence - other.sequence);
    } catch (error) {
      this.onNote(`the last publications of cached topics can't be read from NATS: ${messageOf(error)}`);
      return [];
    }
  }

  /** @param {number} epoch @returns {Promise<Info>} of the stream, once it has everything that the first one has */
  async open(epoch) {
    const { manager, wanted } = this;
    const name = `${wanted.name}_LAST`;
    const description = `The last publications of cached topics in ${wanted.name}, epoch ${epoch}`;
    const found = await infoOf(manager, name);
    if (found && found.config.description !== description) await this.remove(name, epoch);
    if (found?.config.description !== description)
      await manager.streams.add({
        name,
        description,
        sources: [{ name: wanted.name, filter_subject: cachedSubjectsOf(wanted.name) }],
        storage: StorageType.File,
        discard: DiscardPolicy.Old,
        max_msgs_per_subject: 1,
        max_msgs: MOST_CACHED_TOPICS,
        max_bytes: MOST_CACHED_BYTES,
        num_replicas: wanted.replicas,
        allow_direct: true,
      });
    for (const endMs = performance.now() + FILL_MS; ; await after(LOOK_MS)) {
      const info = await manager.streams.info(name);
      const [source] = info.sources ?? [];
      if ((source?.active >= 0 && source.lag === 0) || performance.now() > endMs) return info;
    }
  }

  /** It belongs to another epoch. @param {string} name @param {number} epoch @throws {Error} if that is over */
  async remove(name, epoch) {
    const info = await infoOf(this.manager, this.wanted.name);
    if (!info || identityOf(info).epoch !== epoch) throw new Error('the stream has been created again');
    await this.manager.streams.delete(name);
  }

  /** @param {Info} info @returns {AsyncGenerator<import('./older.js').Stored>} */
  async *messagesIn({ config: { name }, state: { messages, first_seq: first, last_seq: last } }) {
    if (messages === 0) return;
    const stream = new Older({ link: this.link, manager: this.manager, stream: name });
    for (let next = first, before = -1; next <= last && next !== before; ) {
      before = next;
      for await (const message of stream.next(next, PAGE)) {
        next = message.seq + 1;
        yield message;
      }
    }
  }
}
