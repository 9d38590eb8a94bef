/*
 * Ways to write the same code.
 */
import { EventEmitter } from 'node:events';
import { bytesOf, loop, MASK, sixteen } from './inputs.js';

/** @typedef {import('../micro.js').Case} Case */

const numbers = sixteen((i) => String(1000 + i * 37));
const numberBytes = numbers.map(bytesOf);
const values = numbers.map(Number);
const ZERO = 48;

/** @param {Buffer} bytes @returns {number} */
function numberIn(bytes) {
  let value = 0;
  for (let i = 0; i < bytes.length; i++) value = value * 10 + bytes[i] - ZERO;
  return value;
}

// biome-ignore format: a table reads best with a row a line
/** @type {Case[]} */
export const NUMBERS = [
  loop('numberParseInt', 'parseInt of a string that was parsed before', (i) => Number.parseInt(numbers[i], 10), values),
  loop('numberNumber', 'Number of a string that was parsed before', (i) => Number(numbers[i]), values),
  loop('numberByHand', 'digit by digit from a buffer', (i) => numberIn(numberBytes[i]), values),
  loop('numberFromBytes', 'parseInt of a string that is made from a buffer', (i) => Number.parseInt(numberBytes[i].latin1Slice(0, 4), 10), values),
];

/** The sample of the original microprofiler. */
function original() {
  let text = '';
  let total = 0;
  for (let i = 0; i < 100; i++) {
    text += i;
    total += Number.parseInt(text, 10);
  }
  return total > 0 ? 1 : 0;
}

/** @param {number} i */
function plain(i) {
  return (i & 1) + 1;
}

/** @param {number} i */
function guarded(i) {
  try {
    return (i & 1) + 1;
  } catch {
    return 0;
  }
}

const FAILURE = new Error('always the same');

/** @param {number} i @param {Error} error */
function thrown(i, error) {
  try {
    if (i >= 0) throw error;
    return 0;
  } catch {
    return 1;
  }
}

const PLAIN = sixteen((i) => (i & 1) + 1);

// biome-ignore format: a table reads best with a row a line
/** @type {Case[]} */
export const ERRORS = [
  loop('tryNone', 'no try', plain, PLAIN),
  loop('tryCatch', 'try and catch, nothing is thrown', guarded, PLAIN),
  loop('tryThrow', 'an error that exists already is thrown and caught', (i) => thrown(i, FAILURE)),
  loop('tryNew', 'a new Error is thrown and caught', (i) => thrown(i, new Error('new'))),
  loop('tryOriginal', "the original's sample: 100 numbers, concatenated and parsed", original),
];

class Adder {
  /** @param {number} by */
  constructor(by) {
    this.by = by;
    this.bound = this.add.bind(this);
    this.arrow = (/** @type {number} */ to) => to + this.by;
  }

  /** @param {number} to */
  add(to) {
    return to + this.by;
  }
}

/** @param {number} by @returns {(to: number) => number} */
function adderOf(by) {
  return (to) => to + by;
}

const adder = new Adder(1);
const closure = adderOf(1);
const adders = sixteen((i) => new Adder(i));
const closures = sixteen(adderOf);
const kept = sixteen(() => /** @type {unknown} */ (null));
const NEXT = sixteen((i) => i + 1);

// biome-ignore format: a table reads best with a row a line
/** @type {Case[]} */
export const FUNCTIONS = [
  loop('callMethod', 'a method', (i) => adder.add(i), NEXT),
  loop('callClosure', 'a closure', (i) => closure(i), NEXT),
  loop('callBound', 'a bound method', (i) => adder.bound(i), NEXT),
  loop('callArrow', 'an arrow function in a field', (i) => adder.arrow(i), NEXT),
  loop('callMethods', 'a method of sixteen objects in turn', (i) => adders[i].add(1), NEXT),
  loop('callClosures', 'sixteen closures in turn', (i) => closures[i](1), NEXT),
  loop('newObject', 'makes an object of a class with a field', (i) => { kept[i] = { by: i }; return 1; }),
  loop('newClosure', 'makes a closure', (i) => { kept[i] = () => i; return 1; }),
];

const KEYS = 1000;
const names = Array.from({ length: KEYS }, (_, i) => `key-${i}`);
const map = new Map(names.map((name, i) => [name, i]));
const object = Object.fromEntries(map);
const bare = Object.assign(Object.create(null), object);
const asked = sixteen((i) => names[i * 61]);
const found = asked.map((name) => /** @type {number} */ (map.get(name)));
/** Texts that were just received are not the same objects as the keys, and have no hash yet. */
const askedBytes = asked.map(bytesOf);

// biome-ignore format: a table reads best with a row a line
/** @type {Case[]} */
export const LOOKUPS = [
  loop('lookupMap', 'map.get, 1,000 keys', (i) => map.get(asked[i]) ?? -1, found),
  loop('lookupObject', 'object[key], 1,000 keys', (i) => object[asked[i]], found),
  loop('lookupBare', 'the same without a prototype', (i) => bare[asked[i]], found),
  loop('lookupMapNew', 'map.get of a key that was just read from a buffer', (i) => map.get(askedBytes[i].latin1Slice()) ?? -1, found),
  loop('lookupObjectNew', 'object[key] of a key that was just read from a buffer', (i) => object[askedBytes[i].latin1Slice()], found),
  loop('changeMap', 'map.set and map.delete', (i) => { map.set(numbers[i], i); return map.delete(numbers[i]) ? 1 : 0; }),
  loop('changeObject', 'object[key] = and delete', (i) => { object[numbers[i]] = i; return delete object[numbers[i]] ? 1 : 0; }),
];

const COMMANDS = ['get', 'set', 'add', 'replace', 'append', 'prepend', 'delete', 'touch'];
const commands = sixteen((i) => COMMANDS[i % COMMANDS.length]);
const RESULTS = sixteen((i) => (i % COMMANDS.length) + 1);
const HANDLERS = Object.fromEntries(COMMANDS.map((name, i) => [name, () => i + 1]));
const HANDLER_MAP = new Map(Object.entries(HANDLERS));

/** @param {string} command */
function switched(command) {
  switch (command) {
    case 'get':
      return 1;
    case 'set':
      return 2;
    case 'add':
      return 3;
    case 'replace':
      return 4;
    case 'append':
      return 5;
    case 'prepend':
      return 6;
    case 'delete':
      return 7;
    default:
      return 8;
  }
}

// biome-ignore format: a table reads best with a row a line
/** @type {Case[]} */
export const DISPATCH = [
  loop('dispatchSwitch', 'switch with eight commands', (i) => switched(commands[i]), RESULTS),
  loop('dispatchTable', 'an object of functions', (i) => HANDLERS[commands[i]](), RESULTS),
  loop('dispatchMap', 'a Map of functions', (i) => /** @type {() => number} */ (HANDLER_MAP.get(commands[i]))(), RESULTS),
];

const emitter = new EventEmitter();
let emitted = 0;
emitter.on('one', (by) => {
  emitted = by;
});
const listeners = new EventEmitter();
for (let j = 0; j < 4; j++) listeners.on('four', (by) => (emitted = by));
/** @param {number} by @param {(by: number) => void} callback */
const callBack = (by, callback) => callback(by);

// biome-ignore format: a table reads best with a row a line
/** @type {Case[]} */
export const EVENTS = [
  loop('eventCallback', 'a callback', (i) => { callBack(i, (by) => (emitted = by)); return emitted; }, sixteen((i) => i & MASK)),
  loop('eventEmit', 'EventEmitter.emit, one listener', (i) => { emitter.emit('one', i); return emitted; }, sixteen((i) => i & MASK)),
  loop('eventEmitFour', 'EventEmitter.emit, four listeners', (i) => { listeners.emit('four', i); return emitted; }, sixteen((i) => i & MASK)),
];
