/*
 * Text that differs from stream to stream: topics such as 'room/{n%100}', and the request that subscribes to them. Pure, and
 * the same as native/core/src/dial/template.rs.
 */

/**
 * A part of a template. `number` is n, the number of the stream; `remainder` is n % by, `quotient` is n / by rounded down;
 * `token` is the stream's token; `cursor` is the header with its cursor, or nothing if it has none; `wait` is how many seconds a poll
 * waits: without a cursor 0, because it first asks where it is.
 * @typedef {object} Piece
 * @property {'text' | 'number' | 'remainder' | 'quotient' | 'token' | 'cursor' | 'wait'} kind
 * @property {string} text
 * @property {number} by
 */

/** What a template is filled with. @typedef {{ number: number, token?: string, cursor?: string }} Filling */

const EXPRESSION = /\{n(?:([%/])([1-9]\d{0,8}))?\}/g;
/** @type {Record<string, Piece['kind']>} */
const KIND_OF = { '%': 'remainder', '/': 'quotient' };

/** @param {Piece['kind']} kind @param {number} [by] @param {string} [text] @returns {Piece} */
export const piece = (kind, by = 1, text = '') => ({ kind, text, by });

/** @param {string} text @returns {Piece} */
export const textPiece = (text) => piece('text', 1, text);

/** @param {string} text 'room/{n%100}' @returns {Piece[] | null} null if it has braces that are no expression */
export function templateOf(text) {
  const pieces = [];
  let end = 0;
  for (const { 0: all, 1: sign, 2: by, index } of text.matchAll(EXPRESSION)) {
    pieces.push(textPiece(text.slice(end, index)), sign ? piece(KIND_OF[sign], Number(by)) : piece('number'));
    end = index + all.length;
  }
  pieces.push(textPiece(text.slice(end)));
  const isGood = pieces.every((one) => !/[{}]/.test(one.text));
  return isGood ? pieces.filter(({ kind, text }) => kind !== 'text' || text !== '') : null;
}

/** @param {Piece[]} template @param {(text: string) => string} change @returns {Piece[]} with other texts */
export function mapText(template, change) {
  return template.map((one) => ({ ...one, text: change(one.text) }));
}

/** @param {Piece[]} template @param {Filling} filling @returns {string} the text of a stream */
export function fill(template, { number, token = '', cursor = '' }) {
  let all = '';
  for (const { kind, text, by } of template) {
    if (kind === 'text') all += text;
    else if (kind === 'number') all += number;
    else if (kind === 'remainder') all += number % by;
    else if (kind === 'quotient') all += Math.floor(number / by);
    else if (kind === 'token') all += token;
    else if (kind === 'wait') all += cursor ? by : 0;
    else if (cursor) all += `Last-Event-ID: ${cursor}\r\n`;
  }
  return all;
}
