/*
 * What nodes tell each other on the bus (broker/nats/bus.js), to all or to one of them. Any of it may be lost, and anybody who may use NATS
 * can send anything, so all of it is checked before it is read.
 *
 *     node A                                   node B, to all          to A
 *       | <-- beat {number} ------------------- |  every second: it is alive, and how many changes it has told
 *       | <-- change {number, entered, …} ------|  streams that were opened and have ended, once per turn
 *       | <-- bye ----------------------------- |  it stops
 *       | <-- revoke {id, list} --------------- |  streams to be ended; answered, or later to those that were away
 *       | <-- back {revocations} -------------- |  it has started, or was away: what has it missed?
 *       | --- ask {ask} ----------------------> |  A does not know its streams, or has missed changes
 *       | <-- part {ask, index, rows} ----------------------------- |  the whole table, part by part; each is answered
 *       | --- late {of} ----------------------> |  we took you for dead, and have announced the end of your streams
 *       | --- departed {nodes} ---------------> |  these left while you were away, and that is announced
 *       | --- want {ids} ---------------------> |  revocations that it does not know
 *
 * Each has the sender (`from`), and how often it was announced (`life`).
 */

/** Characters of texts in a message: at most 192 KB of UTF-8, so that it stays below 256 KB. */
export const MOST_CHARACTERS = 65_536;
/** The most characters of a text that is in several messages. */
const MOST_TEXT_CHARACTERS = 16_777_216;
/** About what a stream takes in a message besides its text. */
const ROW_CHARACTERS = 48;
/** Ends of streams in a message. */
export const MOST_LEFT = 4096;
/** Ids of nodes or of revocations in a message. */
export const MOST_IDS = 1000;

/** @typedef {import('../revocations.js').Revocation} Revocation */
/** @typedef {[owner: number, id: number, text: string, more?: 1]} Row a stream; `more`: its text goes on in the next one */
/** @typedef {{ from: string, life: number }} Sender */

/**
 * @typedef {Sender & { type: 'beat', number: number, listed: boolean }} Beat `number` of the last change; `listed`: it has presence
 * @typedef {Sender & { type: 'change', number: number, entered: Row[], left: [owner: number, id: number][], retired: number[] }} Change
 *   what entered, and after that what left; `retired`: workers whose streams have all ended, after that
 * @typedef {Sender & { type: 'bye' }} Bye
 * @typedef {Sender & { type: 'revoke', id: string, list: Revocation[] }} Revoke
 * @typedef {Sender & { type: 'back', revocations: string[] }} Back the ids of those that it knows
 * @typedef {Sender & { type: 'ask', ask: number }} Ask
 * @typedef {Sender & { type: 'part', ask: number, index: number, number: number, key: string, rows: Row[], isLast: boolean }} Part `key` of
 *   its subscribers, in base64
 * @typedef {Sender & { type: 'late', of: number }} Late the life that it had
 * @typedef {Sender & { type: 'departed', nodes: [id: string, life: number][] }} Departed
 * @typedef {Sender & { type: 'want', ids: string[] }} Want
 * @typedef {Beat | Change | Bye | Revoke | Back | Ask | Part | Late | Departed | Want} Message
 */

/** @typedef {(value: unknown) => boolean} Check */

/** @type {Check} */
const isCount = (value) => Number.isSafeInteger(value) && Number(value) >= 0;
/** @type {Check} */
const isOwner = (value) => isCount(value) && Number(value) < 2 ** 32;
/** @type {Check} */
const isFlag = (value) => typeof value === 'boolean';
/** @type {Check} */
const isText = (value) => typeof value === 'string';
/** @type {Check} */
const isId = (value) => typeof value === 'string' && /^[\w-]{22}$/.test(value);
/** @type {Check} of 16 bytes in base64 */
const isKey = (value) => typeof value === 'string' && /^[A-Za-z0-9+/]{22}==$/.test(value);
/** @type {Check} */
const isObject = (value) => typeof value === 'object' && value !== null;
/** Of texts only: whoever looks at its values need not check them again. @type {Check} */
const isRevocation = (value) => isObject(value) && Object.values(Object(value)).every(isText);
/** @param {Check} check @param {number} most @returns {Check} */
const listOf =
  (check, most = Number.POSITIVE_INFINITY) =>
  (value) =>
    Array.isArray(value) && value.length <= most && value.every(check);
/** @param {Check[]} checks @returns {Check} a list with exactly these */
const tupleOf =
  (...checks) =>
  (value) =>
    Array.isArray(value) && value.length === checks.length && checks.every((check, i) => check(value[i]));
const isWhole = tupleOf(isOwner, isCount, isText);
const isPiece = tupleOf(isOwner, isCount, isText, (value) => value === 1);
/** @type {Check} */
const isRow = (value) => isWhole(value) || isPiece(value);

/** What each has besides `from` and `life`. @type {Record<Message['type'], Record<string, Check>>} */
const SHAPES = {
  beat: { number: isCount, listed: isFlag },
  change: {
    number: isCount,
    entered: listOf(isRow),
    left: listOf(tupleOf(isOwner, isCount)),
    retired: listOf(isOwner),
  },
  bye: {},
  revoke: { id: isId, list: listOf(isRevocation) },
  back: { revocations: listOf(isId, MOST_IDS) },
  ask: { ask: isCount },
  part: { ask: isCount, index: isCount, number: isCount, key: isKey, rows: listOf(isRow), isLast: isFlag },
  late: { of: isCount },
  departed: { nodes: listOf(tupleOf(isId, isCount), MOST_IDS) },
  want: { ids: listOf(isId, MOST_IDS) },
};

/** @param {unknown} object @returns {Message} it @throws {Error} what is wrong with it */
export function checkedMessage(object) {
  const message = /** @type {Record<string, unknown>} */ (object);
  if (!isObject(object) || !isText(message.type)) throw new Error('it is no message of a node');
  const { type } = message;
  if (!Object.hasOwn(SHAPES, String(type))) throw new Error('its type is unknown'); // perhaps of a newer version
  const shape = { from: isId, life: isCount, ...SHAPES[/** @type {Message['type']} */ (type)] };
  for (const [name, check] of Object.entries(shape))
    if (!check(message[name])) throw new Error(`its ${name} is wrong`);
  return /** @type {Message} */ (object);
}

/**
 * @param {Iterable<[owner: number, id: number, text: string]>} streams @param {number} [most] characters
 * @returns {Generator<Row[]>} rows that fit into one message each; a long text is in several
 */
export function* rowsOf(streams, most = MOST_CHARACTERS) {
  /** @type {Row[]} */
  let rows = [];
  let size = 0;
  for (const [owner, id, text] of streams)
    for (let at = 0, end = 0; end < text.length; at = end) {
      end = Math.min(text.length, at + most);
      const piece = text.slice(at, end);
      if (size > 0 && size + piece.length > most) {
        yield rows;
        rows = [];
        size = 0;
      }
      rows.push(end < text.length ? [owner, id, piece, 1] : [owner, id, piece]);
      size += piece.length + ROW_CHARACTERS;
    }
  if (rows.length > 0) yield rows;
}

/** Puts the texts of rows together again. */
export class Pieces {
  constructor() {
    this.before = '';
  }

  /** @param {Row} row @returns {string | undefined} its text; undefined if it goes on */
  take([, , text, more]) {
    if (this.before.length > MOST_TEXT_CHARACTERS) throw new Error('its text of a stream is too long');
    this.before += text;
    if (more) return undefined;
    const whole = this.before;
    this.before = '';
    return whole;
  }
}
