/*
 * Reads what `tmux capture-pane -e` writes: text with SGR sequences (ECMA-48).
 */

export const BACKGROUND = '#16181d';
const FOREGROUND = '#d7dae0';
/** The eight colours of a terminal; the bright ones look the same. */
const COLORS = '#16181d #e06c75 #98c379 #e5c07b #61afef #c678dd #56b6c2 #d7dae0'.split(' ');

/** @typedef {{ color: string, ground: string, inverse: boolean, bold: boolean }} Style ground: the background, '' for none */
/** @typedef {{ char: string, style: Style }} Cell */

/** @returns {Style} */
const plainStyle = () => ({ color: FOREGROUND, ground: '', inverse: false, bold: false });

/** @param {string} text @returns {Cell[][]} a row per line */
export function parseScreen(text) {
  let style = plainStyle();
  return text
    .replace(/\n+$/, '')
    .split('\n')
    .map((line) => {
      /** @type {Cell[]} */
      const cells = [];
      // biome-ignore lint/suspicious/noControlCharactersInRegex: ESC begins a sequence
      for (const [, codes, char] of line.matchAll(/\x1b\[([\d;]*)m|([^\x1b])/gu)) {
        if (char === undefined) style = restyle(style, codes);
        else cells.push({ char, style });
      }
      return cells;
    });
}

/** @param {Style} style @param {string} codes '1;32' @returns {Style} */
function restyle(style, codes) {
  const numbers = codes.split(';').map(Number);
  let next = style;
  for (let i = 0; i < numbers.length; i++) {
    const code = numbers[i];
    if (code === 0) next = plainStyle();
    else if (code === 1) next = { ...next, bold: true };
    else if (code === 7 || code === 27) next = { ...next, inverse: code === 7 };
    else if (code === 49) next = { ...next, ground: '' };
    else if (code >= 40 && code <= 47) next = { ...next, ground: COLORS[code - 40] };
    else if (code === 39) next = { ...next, color: FOREGROUND };
    else if (code >= 30 && code <= 37) next = { ...next, color: COLORS[code - 30] };
    else if (code >= 90 && code <= 97) next = { ...next, color: COLORS[code - 90] };
    else if (code === 38 && numbers[i + 1] === 5) {
      next = { ...next, color: COLORS[numbers[i + 2] % 8] ?? FOREGROUND };
      i += 2;
    }
  }
  return next;
}
