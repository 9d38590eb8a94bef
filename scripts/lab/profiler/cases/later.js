/*
 * Ways to go on later: each call begins when the one before has ended.
 */

/** @typedef {import('../micro.js').Case} Case */

/**
 * A chain that is compiled for its case alone, as `loop` of inputs.js does it.
 * @param {string} name @param {string} text @param {(callback: () => void) => unknown} schedule
 * @returns {Case}
 */
function chain(name, text, schedule) {
  const source = `/* ${name} */ return (n) => new Promise((resolve) => {
    let done = 0;
    const next = () => {
      if (++done === n) resolve(done);
      else schedule(next);
    };
    schedule(next);
  });`;
  return { name, text, run: new Function('schedule', source)(schedule), expected: (n) => n };
}

/** @param {number} value @param {(value: number) => void} callback */
function withCallback(value, callback) {
  callback(value);
}

/** @param {number} value */
async function withAsync(value) {
  return value;
}

/** @param {string} name @param {string} text @param {(n: number) => Promise<number>} run @returns {Case} */
function summed(name, text, run) {
  return { name, text, run, expected: (n) => n };
}

/** @type {Case[]} */
export const LATER = [
  summed('laterCallback', 'a callback that is called at once', async (n) => {
    let sum = 0;
    const add = (/** @type {number} */ value) => {
      sum += value;
    };
    for (let i = 0; i < n; i++) withCallback(1, add);
    return sum;
  }),
  summed('laterAsync', 'await of an async function', async (n) => {
    let sum = 0;
    for (let i = 0; i < n; i++) sum += await withAsync(1);
    return sum;
  }),
  summed('laterNew', 'await of a new Promise', async (n) => {
    let sum = 0;
    for (let i = 0; i < n; i++) sum += await new Promise((resolve) => withCallback(1, resolve));
    return sum;
  }),
  summed('laterValue', 'await of a value that is no promise', async (n) => {
    let sum = 0;
    for (let i = 0; i < n; i++) sum += await 1;
    return sum;
  }),
  chain('laterThen', 'promise.then', (next) => Promise.resolve().then(next)),
  chain('laterMicrotask', 'queueMicrotask', queueMicrotask),
  chain('laterTick', 'process.nextTick', process.nextTick),
  chain('laterImmediate', 'setImmediate', setImmediate),
];
