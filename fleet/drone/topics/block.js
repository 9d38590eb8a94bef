/*
 * A block of Server-Sent Events: the lines up to an empty one. Pure, and the same as native/core/src/dial/block.rs.
 */

/**
 * @typedef {object} Block
 * @property {string | null} id the new last event id; an empty one removes it
 * @property {string | null} data null if the block dispatches no event; of several lines the first
 * @property {boolean} isOdd whether it has a line that no server has a reason to send
 */

/**
 * @param {string} text
 * @returns {number} the size of the first unit: a block with the empty line that ends it, or a line outside of a block, which
 *   is empty or a comment; 0 if it is incomplete
 */
export function unitSize(text) {
  if (text.startsWith('\n')) return 1;
  const end = text.startsWith(':') ? '\n' : '\n\n';
  const at = text.indexOf(end);
  return at < 0 ? 0 : at + end.length;
}

/** @param {string} unit @returns {Block} */
export function blockOf(unit) {
  /** @type {Block} */
  const block = { id: null, data: null, isOdd: false };
  for (const line of unit.split('\n')) {
    if (line === '' || line.startsWith(':')) continue;
    const [, name, value = ''] = /** @type {RegExpExecArray} */ (/^([^:]*)(?:: ?(.*))?$/s.exec(line));
    if (name === 'data') block.data ??= value;
    else if (name === 'id') block.id = value.includes('\0') ? block.id : value;
    else if (name !== 'event' && !(name === 'retry' && /^\d*$/.test(value))) block.isOdd = true;
  }
  return block;
}
