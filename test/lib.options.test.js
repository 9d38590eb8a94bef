import assert from 'node:assert/strict';
import { test } from 'node:test';
import { optionLines } from '../lib/help.js';
import { FLAG, integer, listed, option, readOptions, repeated, text } from '../lib/options.js';

const TABLE = [
  option('concurrency', 'concurrency', integer(1, 100), 10, 'connections', 'c'),
  option('n', 'n', integer(1, 1000), 5, 'how many', 'n'),
  option('header', 'headers', repeated(text('TEXT', 'a text')), [], 'a header', 'H'),
  option('quiet', 'quiet', FLAG, false, 'say nothing', 'q'),
  option('long', 'long', integer(0, 9), 1, 'no letter stands for it'),
];

/** @param {string[]} args @param {number} [mostWords] */
const read = (args, mostWords) => readOptions(TABLE, args, {}, mostWords);

/** @param {string[]} args @param {number} [mostWords] */
const refusalOf = (args, mostWords = 0) => {
  try {
    read(args, mostWords);
  } catch (error) {
    return /** @type {Error} */ (error).message;
  }
  return '';
};

test('a letter stands for its flag, with or without a space before its value', () => {
  assert.equal(read(['-c', '20']).values.concurrency, 20);
  assert.equal(read(['-c20']).values.concurrency, 20);
  assert.equal(read(['--concurrency', '20']).values.concurrency, 20);
  assert.deepEqual(read(['-qn', '7']).values, { concurrency: 10, n: 7, headers: [], quiet: true, long: 1 });
});

test('an error about a letter names the letter', () => {
  assert.match(refusalOf(['-c', 'many']), /^-c got 'many': expected a whole number from 1 to 100/);
  assert.match(refusalOf(['-c']), /^-c got no value/);
  assert.match(refusalOf(['--concurrency=0']), /^--concurrency got '0'/);
  assert.match(refusalOf(['-l', '3']), /^unknown option -l: did you mean --long\? See --help$/);
});

test('-h is help even if -H is another option', () => {
  const { help, values } = read(['-h', '-H', 'A: 1']);
  assert.equal(help, true);
  assert.deepEqual(values.headers, ['A: 1']);
});

test('an option that repeats has all its values in order, and flags win over the environment', () => {
  assert.deepEqual(read(['-H', 'A: 1', '-c', '3', '--header', 'B: 2']).values.headers, ['A: 1', 'B: 2']);
  const env = { HOLDFAST_HEADER: 'C: 3' };
  assert.deepEqual(readOptions(TABLE, [], env).values.headers, ['C: 3']);
  assert.deepEqual(readOptions(TABLE, ['-H', 'A: 1'], env).values.headers, ['A: 1']);
});

test('an option with a list takes values separated by commas, from a flag and from the environment', () => {
  const table = [option('size', 'sizes', listed(integer(1, 9)), [1, 2], 'sizes')];
  const sizesOf = (/** @type {string[]} */ args, /** @type {Record<string, string>} */ env = {}) =>
    readOptions(table, args, env).values.sizes;
  assert.deepEqual(sizesOf(['--size', '3,4', '--size', '5']), [3, 4, 5]);
  assert.deepEqual(sizesOf([], { HOLDFAST_SIZE: '6, 7' }), [6, 7]);
  assert.deepEqual(sizesOf([]), [1, 2]);
  assert.throws(() => sizesOf(['--size', '3,x']), /^HoldfastError: --size got 'x': expected a whole number/);
  assert.throws(() => sizesOf(['--size', '3,']), /--size got '': expected/);
  assert.deepEqual(read(['-H', 'A: 1, 2']).values.headers, ['A: 1, 2']);
});

test('the list of one call is not reused in the next', () => {
  read(['-H', 'A: 1']);
  assert.deepEqual(read([]).values.headers, []);
});

test('for an option that does not repeat, the last value counts', () => {
  assert.equal(read(['-c', '2', '--concurrency', '3']).values.concurrency, 3);
});

test('as many arguments as are allowed may be mixed with the flags', () => {
  assert.deepEqual(read(['-c', '2', 'http://localhost/', '-q'], 1).words, ['http://localhost/']);
  assert.deepEqual(read(['-c', '2'], 1).words, []);
  assert.match(refusalOf(['one', 'two'], 1), /^unexpected argument 'two'/);
  assert.match(refusalOf(['one']), /^unexpected argument 'one'/);
});

test('the help has the letter before the flag, and no empty defaults', () => {
  const lines = optionLines(TABLE).split('\n');
  assert.match(lines[0], /^ {2}-c, --concurrency N {2,}connections \(10\)$/);
  assert.match(lines[1], /^ {2}-n N {2,}how many \(5\)$/);
  assert.match(lines[2], /^ {2}-H, --header TEXT {2,}a header$/);
  assert.match(lines[4], /^ {2}--long N {2,}/);
});

test('the help is wrapped to the width of the terminal, but not in a very narrow one', () => {
  const table = [
    option('any', 'any', text('TEXT', 'a text'), '', 'words that need more than one line of the terminal'),
  ];
  const lines = optionLines(table, [], 40).split('\n');
  assert.deepEqual(lines, [
    '  --any TEXT  words that need more than',
    '              one line of the terminal',
  ]);
  assert.equal(optionLines(table, [], 30).split('\n').length, 1);
});
