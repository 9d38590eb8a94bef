/*
 * A Map of answers, for the steps that collect them in an Output.
 */
const STORED = Buffer.from('STORED\r\n');
const END = Buffer.from('END\r\n');
const ERROR = Buffer.from('ERROR\r\n');

/** @type {Map<string, Buffer>} */
const items = new Map();

/** @param {import('../output.js').Output} output @param {string[]} words @param {Buffer} value */
export function answer(output, words, value) {
  if (words[0] === 'get') {
    for (let i = 1; i < words.length; i++) {
      const item = items.get(words[i]);
      if (item) output.put(item);
    }
    output.put(END);
  } else if (words[0] === 'set') {
    items.set(words[1], itemOf(words, value));
    if (words.at(-1) !== 'noreply') output.put(STORED);
  } else output.put(ERROR);
}

/** @param {string[]} words @param {Buffer} value @returns {Buffer} what get answers */
function itemOf([, key, flags, , length], value) {
  const head = `VALUE ${key} ${flags} ${length}\r\n`;
  const item = Buffer.allocUnsafe(head.length + value.length);
  item.write(head, 'latin1');
  item.set(value, head.length);
  return item;
}
