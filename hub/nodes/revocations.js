/*
 * Revocations on their way to all nodes. Each ends its own streams and says so. All nodes keep those of the last minutes, for nodes that
 * were away.
 */
import { randomBytes } from 'node:crypto';
import { MOST_IDS } from './messages.js';

/** How long they are kept, and how much of them. */
const KEEP_MS = 600_000;
const MOST_KEPT_CHARACTERS = 4_194_304;
/** Of a message. */
const MOST_CHARACTERS = 65_536;
const ID_BYTES = 16;
/** How long others may take to end their streams; each gives its workers a second. */
const REVOKE_MS = 2000;

/** @typedef {import('../revocations.js').Revocation} Revocation */
/** @typedef {{ workers: number, unanswered: number }} Outcome in how many processes streams are ended, and how many have not answered */
/** @typedef {Outcome & { nodes: number, silent: number, isConnected: boolean }} NodesOutcome of all nodes; `silent`: nodes that have not
 *   answered; `isConnected`: without it, there may be more nodes */
/** @typedef {{ id: string, list: Revocation[] }} Group what goes in one message */
/** @typedef {Group & { size: number, atMs: number }} KeptGroup */
/** @typedef {Group & { ageMs: number }} OldGroup */

export class Revocations {
  /**
   * @param {object} options
   * @param {import('../../broker/nats/bus.js').Bus} options.bus
   * @param {() => import('./messages.js').Sender} options.sender
   * @param {(list: Revocation[]) => Promise<Outcome>} options.end ends streams of this node; rejects if it can't read the list
   * @param {() => number} options.now in ms
   * @param {(line: string) => void} options.onProblem
   */
  constructor({ bus, sender, end, now, onProblem }) {
    this.bus = bus;
    this.sender = sender;
    this.end = end;
    this.onProblem = onProblem;
    this.kept = new Kept(now);
  }

  /**
   * @param {Revocation[]} list @param {number} others nodes that should answer
   * @returns {Promise<NodesOutcome>} once the streams are being ended, or at the deadline
   */
  async revoke(list, others) {
    const groups = groupsOf(list);
    for (const group of groups) this.kept.add(group);
    const told = Promise.all(groups.map((group) => this.tell(group, others)));
    const own = await this.end(list);
    const answers = await told;
    const most = (/** @type {(answers: Outcome[]) => number} */ countOf) =>
      Math.max(0, ...answers.map(countOf));
    return {
      nodes: others + 1,
      silent: most(({ length }) => others - length),
      workers: own.workers + most((outcomes) => sumOf(outcomes, 'workers')),
      unanswered: own.unanswered + most((outcomes) => sumOf(outcomes, 'unanswered')),
      isConnected: this.bus.isConnected,
    };
  }

  /** @param {Group} group @param {number} others that should answer @returns {Promise<Outcome[]>} */
  async tell({ id, list }, others) {
    const message = { type: 'revoke', ...this.sender(), id, list };
    if (others === 0) {
      this.bus.publish('nodes', message); // somebody may have come just now
      return [];
    }
    const answers = await this.bus.requestMany('nodes', message, REVOKE_MS, others);
    return answers.filter(isOutcome);
  }

  /** Another node has revoked something. @param {import('./messages.js').Revoke} message @param {(outcome: Outcome) => void} reply */
  async obey({ id, list }, reply) {
    if (!this.kept.add({ id, list })) return reply({ workers: 0, unanswered: 0 });
    try {
      reply(await this.end(list));
    } catch {
      this.kept.remove(id);
      this.onProblem("a revocation of another node was ignored: it can't be read");
    }
  }
}

export class Kept {
  /** @param {() => number} now in ms */
  constructor(now) {
    this.now = now;
    /** By id, oldest first. @type {Map<string, KeptGroup>} */
    this.groups = new Map();
    this.size = 0;
  }

  /** @param {Group} group @param {number} [ageMs] @returns {boolean} false if it is known */
  add({ id, list }, ageMs = 0) {
    if (this.groups.has(id)) return false;
    const size = sizeOf(list);
    this.groups.set(id, { id, list, size, atMs: this.now() - ageMs });
    this.size += size;
    this.trim();
    return true;
  }

  /** @returns {OldGroup[]} all of them, oldest first, for another process */
  old() {
    this.trim();
    return [...this.groups.values()].map(({ id, list, atMs }) => ({ id, list, ageMs: this.now() - atMs }));
  }

  /** @param {readonly OldGroup[]} groups of another process; none is known here */
  addOld(groups) {
    for (const { id, list, ageMs } of groups) this.add({ id, list }, ageMs);
  }

  /** @param {string} id */
  remove(id) {
    const group = this.groups.get(id);
    if (!group) return;
    this.groups.delete(id);
    this.size -= group.size;
  }

  trim() {
    for (const [id, { atMs }] of this.groups) {
      const isOld = this.now() - atMs > KEEP_MS;
      if (!isOld && this.size <= MOST_KEPT_CHARACTERS && this.groups.size <= MOST_IDS) return;
      this.remove(id);
    }
  }

  /** @returns {string[]} at most MOST_IDS */
  ids() {
    this.trim();
    return [...this.groups.keys()];
  }

  /** @param {readonly string[]} ids that somebody has @returns {Group[]} the others */
  without(ids) {
    this.trim();
    const known = new Set(ids);
    return [...this.groups.values()].filter(({ id }) => !known.has(id));
  }

  /** @param {readonly string[]} ids @returns {Group[]} those that we have */
  those(ids) {
    return ids.flatMap((id) => this.groups.get(id) ?? []);
  }
}

/** @param {readonly Revocation[]} list @returns {Group[]} that fit into one message each */
export function groupsOf(list) {
  /** @type {Group[]} */
  const groups = [];
  let size = Number.POSITIVE_INFINITY;
  for (const one of list) {
    const more = sizeOf([one]);
    if (size + more > MOST_CHARACTERS) {
      groups.push({ id: randomBytes(ID_BYTES).toString('base64url'), list: [] });
      size = 0;
    }
    groups[groups.length - 1].list.push(one);
    size += more;
  }
  return groups;
}

/** @param {readonly Revocation[]} list @returns {number} characters, about */
function sizeOf(list) {
  let size = 0;
  for (const one of list) for (const value of Object.values(one)) size += String(value).length + 16;
  return size;
}

/** @param {unknown} answer @returns {answer is Outcome} */
function isOutcome(answer) {
  const { workers, unanswered } = /** @type {Partial<Outcome>} */ (answer ?? {});
  return Number.isSafeInteger(workers) && Number.isSafeInteger(unanswered);
}

/** @param {readonly Outcome[]} outcomes @param {keyof Outcome} name */
function sumOf(outcomes, name) {
  return outcomes.reduce((sum, outcome) => sum + outcome[name], 0);
}
