/*
 * Random commands for memcached: also wrong ones, and odd numbers, keys and values.
 */
import { randomNumbers } from './random.js';

const KEYS = [
  'a',
  'b',
  'key:with:colons',
  'x'.repeat(250),
  'x'.repeat(251),
  'ü',
  'tab\there',
  'noreply',
  '0',
];
const NUMBERS = [
  '0',
  '1',
  '7',
  '99',
  '4294967295',
  '4294967296',
  '18446744073709551615',
  '18446744073709551616',
];
const ODD_NUMBERS = ['-1', '-0', '+3', 'x', '1x', '00012', '99999999999999999999999', '9223372036854775808'];
const TIMES = ['0', '0', '0', '100', '-1', '2592000', '2592001', '4102444800', '-99999999', '1x'];
const VALUES = [
  '',
  '5',
  '10',
  '18446744073709551615',
  '  8',
  '8  ',
  '-3',
  'abc',
  'x\r\ny',
  'END\r\n',
  '\0ÿ\n',
  '1'.repeat(21),
  'v'.repeat(1500),
];

/** @param {number} seed @param {number} count @returns {string[]} most of them correct, with their values */
export function randomCommands(seed, count) {
  const random = randomNumbers(seed);
  const one = (/** @type {readonly string[]} */ list) => list[random(list.length)];
  const key = () => (random(8) === 0 ? one(KEYS) : one(KEYS.slice(0, 3)));
  const shortKey = () => one(KEYS.slice(0, 3));
  const number = () => (random(8) === 0 ? one(ODD_NUMBERS) : one(NUMBERS));
  const quiet = () => (random(10) === 0 ? ' noreply' : '');
  const value = () => one(VALUES);
  const cas = () => (random(3) === 0 ? number() : String(random(60)));
  const flags = (/** @type {readonly string[]} */ list) =>
    Array.from({ length: random(6) }, () => ` ${one(list)}`).join('');
  const lengthOf = (/** @type {string} */ text) =>
    random(60) === 0 ? String(Math.max(0, text.length - 1)) : String(text.length);
  const storing = (/** @type {string} */ name, extra = '') => {
    const text = value();
    const length = lengthOf(text);
    return `${name} ${key()} ${random(10) === 0 ? number() : 5} ${one(TIMES)} ${length}${extra}${quiet()}\r\n${text}\r\n`;
  };
  const base64 = ['YQ==', 'YWJj', '!!!!', 'YQ'];
  const metaKey = () => (random(6) === 0 ? `${one(base64)} b` : key());
  /** @type {(() => string)[]} */
  const makers = [
    ...['set', 'set', 'set', 'add', 'replace', 'append', 'prepend'].map((name) => () => storing(name)),
    () => `set ${one(KEYS.slice(0, 3))} 1 0 70000\r\n${'w'.repeat(70_000)}\r\n`,
    () => storing('cas', ` ${cas()}`),
    () => `get ${key()}\r\n`,
    () => `${one(['get', 'gets'])} ${Array.from({ length: 1 + random(30) }, shortKey).join(' ')}\r\n`,
    () => `gets ${shortKey()} ${shortKey()}\r\n`,
    () => `${one(['gat', 'gats'])} ${one(TIMES)} ${shortKey()} ${shortKey()}\r\n`,
    () => `${one(['incr', 'decr'])} ${key()} ${number()}${quiet()}\r\n`,
    () => `touch ${key()} ${one(TIMES)}${quiet()}\r\n`,
    () => `delete ${key()}${one(['', '', '', ' 0', ' 5', ' 0 noreply', ' x y'])}${quiet()}\r\n`,
    () => (random(10) === 0 ? `flush_all${one(['', ' 0', ' -1', ' x', ' noreply', ' 0 noreply'])}\r\n` : ''),
    () => `verbosity ${one(['0', '1', 'x', '1 noreply', '1 2 3'])}\r\n`,
    () =>
      `${one(['', ' ', 'x', 'ge', 'get', 'get ', 'gets', 'gat', 'gat 0', 'set', 'set a', 'set a 0 0', 'cas a 0 0 1', 'incr a', 'touch a', 'delete', 'foo bar', 'GET a', 'mg', 'ms', 'ms a', 'md', 'ma', 'me', 'mx a', 'verbosity', 'bogus HTTP/1'.slice(0, 5), 'stats nothing', 'set a 0 0 -1', 'set a 0 0 x', 'set a 0 0 1 2 3'])}\r\n`,
    () =>
      `mg ${metaKey()}${flags(['v', 's', 't', 'c', 'f', 'k', 'h', 'q', 'u', 'O1234', 'N30', 'R40', 'T100', 'T0', 'Tx', 'z', 'v', `O${'o'.repeat(40)}`])}\r\n`,
    () => {
      const text = value();
      return `ms ${metaKey().replace(' b', random(2) ? '' : '')} ${lengthOf(text)}${flags(['c', 'k', 'q', 'F9', 'T0', 'T100', 'I', 'ME', 'MA', 'MP', 'MR', 'MS', 'Mx', `C${cas()}`, 'Ox', 'b', 'Fx'])}\r\n${text}\r\n`;
    },
    () => `md ${metaKey()}${flags(['q', 'k', 'I', 'T30', `C${cas()}`, 'Oabc', 'z'])}\r\n`,
    () =>
      `ma ${metaKey()}${flags(['v', 't', 'c', 'q', 'N0', 'N100', 'J13', 'D7', 'Dx', 'MI', 'MD', 'M+', 'M-', 'Mx', 'T100', `C${cas()}`, 'O9', 'k'])}\r\n`,
    () => 'mn\r\n',
  ];
  return Array.from({ length: count }, () => makers[random(makers.length)]());
}
