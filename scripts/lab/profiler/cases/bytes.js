/*
 * Buffers against strings: what a server of a text protocol does with them.
 */
import { bytesOf, loop, sixteen, textOf } from './inputs.js';

/** @typedef {import('../micro.js').Case} Case */

const SMALL = 64;
const LARGE = 1024;
const KEY = 16;
const NEWLINE = 10;

const small = sixteen((i) => textOf(SMALL, i));
const large = sixteen((i) => textOf(LARGE, i));
const twins = sixteen((i) => textOf(SMALL, i)); // equal, but not the same
const keys = sixteen((i) => textOf(KEY, i));
const smallBytes = small.map(bytesOf);
const largeBytes = large.map(bytesOf);
const twinBytes = twins.map(bytesOf);
const lines = sixteen((i) => `get ${textOf(KEY + i, i)}\r\n`);
const lineBytes = lines.map(bytesOf);
const lineEnds = lines.map((line) => line.indexOf('\n'));
const lastOf = (/** @type {string[]} */ texts) => texts.map((text) => text.charCodeAt(text.length - 1));
const HEAD = 'VALUE key 0 64\r\n';
const TAIL = '\r\nEND\r\n';
const HEAD_BYTES = Buffer.from(HEAD);
const TAIL_BYTES = Buffer.from(TAIL);
const out = bytesOf(4096);

/** @param {readonly string[]} texts @param {readonly Buffer[]} bodies @param {number} size @returns {Case[]} an answer as bytes, three ways */
function answers(texts, bodies, size) {
  const length = HEAD.length + size + TAIL.length;
  const copied = (/** @type {Buffer} */ body) => {
    out.set(HEAD_BYTES, 0);
    out.set(body, HEAD.length);
    out.set(TAIL_BYTES, HEAD.length + size);
    return out[length - 1];
  };
  const each = sixteen(() => NEWLINE);
  const head = size === SMALL ? '' : 'Large';
  return [
    loop(
      `answerString${head}`,
      `string + string + string, then Buffer.from (${size} bytes)`,
      (i) => {
        const bytes = Buffer.from(HEAD + texts[i] + TAIL, 'latin1');
        return bytes[length - 1];
      },
      each,
    ),
    loop(
      `answerConcat${head}`,
      `Buffer.concat of three buffers (${size} bytes)`,
      (i) => {
        const bytes = Buffer.concat([HEAD_BYTES, bodies[i], TAIL_BYTES], length);
        return bytes[length - 1];
      },
      each,
    ),
    loop(
      `answerCopy${head}`,
      `three copies into one buffer that is kept (${size} bytes)`,
      (i) => copied(bodies[i]),
      each,
    ),
  ];
}

/** @param {Buffer} bytes @returns {number} */
function newlineIn(bytes) {
  for (let i = 0; i < bytes.length; i++) if (bytes[i] === NEWLINE) return i;
  return -1;
}

/** @param {Buffer} one @param {Buffer} other */
function areEqual(one, other) {
  if (one.length !== other.length) return false;
  for (let i = 0; i < one.length; i++) if (one[i] !== other[i]) return false;
  return true;
}

/** @param {string} text @returns {number} how many bytes it has written */
function writeByHand(text) {
  for (let i = 0; i < text.length; i++) out[i] = text.charCodeAt(i);
  return text.length;
}

// biome-ignore format: a table reads best with a row a line
/** @type {Case[]} */
export const MAKING = [
  loop('makeAlloc', 'Buffer.alloc(64)', () => Buffer.alloc(SMALL).length, sixteen(() => SMALL)),
  loop('makeUnsafe', 'Buffer.allocUnsafe(64)', () => Buffer.allocUnsafe(SMALL).length, sixteen(() => SMALL)),
  loop('makeUint8', 'new Uint8Array(64)', () => new Uint8Array(SMALL).length, sixteen(() => SMALL)),
  loop('makeFrom', "Buffer.from(string of 64, 'latin1')", (i) => Buffer.from(small[i], 'latin1')[SMALL - 1], lastOf(small)),
  loop('makeSubarray', 'buffer.subarray', (i) => smallBytes[i].subarray(i, SMALL).length, sixteen((i) => SMALL - i)),
  loop('makeSlice', 'string.slice', (i) => small[i].slice(i, SMALL).length, sixteen((i) => SMALL - i)),
];

/** @type {Case[]} */
export const ANSWERS = [...answers(small, smallBytes, SMALL), ...answers(large, largeBytes, LARGE)];

// biome-ignore format: a table reads best with a row a line
/** @type {Case[]} */
export const COMPARING = [
  loop('compareString', 'string === an equal string (64)', (i) => (small[i] === twins[i] ? 1 : 0)),
  loop('compareEquals', 'buffer.equals (64)', (i) => (smallBytes[i].equals(twinBytes[i]) ? 1 : 0)),
  loop('compareCompare', 'Buffer.compare (64)', (i) => (Buffer.compare(smallBytes[i], twinBytes[i]) === 0 ? 1 : 0)),
  loop('compareByHand', 'byte by byte (64)', (i) => (areEqual(smallBytes[i], twinBytes[i]) ? 1 : 0)),
];

// biome-ignore format: a table reads best with a row a line
/** @type {Case[]} */
export const SEARCHING = [
  loop('searchString', "string.indexOf('\\n') in a line", (i) => lines[i].indexOf('\n'), lineEnds),
  loop('searchByte', 'buffer.indexOf(10) in a line', (i) => lineBytes[i].indexOf(NEWLINE), lineEnds),
  loop('searchText', "buffer.indexOf('\\r\\n') in a line", (i) => lineBytes[i].indexOf('\r\n') + 1, lineEnds),
  loop('searchByHand', 'byte by byte in a line', (i) => newlineIn(lineBytes[i]), lineEnds),
  loop('searchSplit', "string.split(' ') of a line", (i) => lines[i].split(' ').length, sixteen(() => 2)),
];

// biome-ignore format: a table reads best with a row a line
/** @type {Case[]} */
export const READING = [
  loop('readLatin1', "toString('latin1'), 64 bytes", (i) => smallBytes[i].toString('latin1', 0, SMALL).charCodeAt(SMALL - 1), lastOf(small)),
  loop('readLatin1Slice', 'latin1Slice, 64 bytes', (i) => smallBytes[i].latin1Slice(0, SMALL).charCodeAt(SMALL - 1), lastOf(small)),
  loop('readUtf8Slice', 'utf8Slice, 64 bytes', (i) => smallBytes[i].utf8Slice(0, SMALL).charCodeAt(SMALL - 1), lastOf(small)),
  loop('readKey', 'latin1Slice, 16 bytes', (i) => smallBytes[i].latin1Slice(0, KEY).charCodeAt(KEY - 1), lastOf(keys)),
  loop('readLargeLatin1', 'latin1Slice, 1,024 bytes', (i) => largeBytes[i].latin1Slice(0, LARGE).charCodeAt(LARGE - 1), lastOf(large)),
  loop('readLargeUtf8', 'utf8Slice, 1,024 bytes', (i) => largeBytes[i].utf8Slice(0, LARGE).charCodeAt(LARGE - 1), lastOf(large)),
];

// biome-ignore format: a table reads best with a row a line
/** @type {Case[]} */
export const WRITING = [
  loop('writeLatin1', "write(string of 64, 'latin1')", (i) => out.write(small[i], 0, 'latin1'), sixteen(() => SMALL)),
  loop('writeLatin1Write', 'latin1Write of 64', (i) => out.latin1Write(small[i], 0, SMALL), sixteen(() => SMALL)),
  loop('writeUtf8', "write(string of 64, 'utf8')", (i) => out.write(small[i], 0, 'utf8'), sixteen(() => SMALL)),
  loop('writeByHand', 'charCodeAt in a loop, 64', (i) => writeByHand(small[i]), sixteen(() => SMALL)),
  loop('writeSet', 'set of a buffer of 64', (i) => { out.set(smallBytes[i], 0); return out[SMALL - 1]; }, lastOf(small)),
];
