/*
 * Elements. Everything that is shown goes in as text.
 */

/** @template {HTMLElement} [T=HTMLElement] @param {string} id @returns {T} */
export function byId(id) {
  return /** @type {T} */ (document.getElementById(id));
}

/**
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag @param {string} className @param {...(Node | string)} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function element(tag, className, ...children) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

/** Only if it differs, so that nothing is laid out in vain. @param {Element} node @param {string} text */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** @typedef {{ text: string, className?: string }} Cell */

/**
 * Makes the rows of a table what they should be; those that are there are kept.
 * @param {string} id of the table
 * @param {(Cell | string)[][]} rows the first cell is the header of its row
 * @param {string} [ifEmpty] said instead
 */
export function fillTable(id, rows, ifEmpty = '') {
  const body = /** @type {HTMLTableSectionElement} */ (byId(id).querySelector('tbody'));
  const shown = rows.length > 0 || !ifEmpty ? rows : [[{ text: ifEmpty, className: 'none' }]];
  while (body.rows.length > shown.length) body.deleteRow(-1);
  shown.forEach((cells, i) => {
    fillRow(body.rows[i] ?? body.insertRow(), cells);
  });
}

/** @param {HTMLTableRowElement} row @param {(Cell | string)[]} cells */
function fillRow(row, cells) {
  if (row.cells.length !== cells.length) row.replaceChildren();
  cells.forEach((cell, i) => {
    const { text, className = '' } = typeof cell === 'string' ? { text: cell } : cell;
    const found = row.cells[i] ?? row.appendChild(headerOrCell(i, cells.length));
    if (found.className !== className) found.className = className;
    setText(found, text);
  });
}

/** @param {number} at @param {number} of */
function headerOrCell(at, of) {
  if (at > 0 || of === 1) return document.createElement('td');
  const header = document.createElement('th');
  header.scope = 'row';
  return header;
}

/** @param {string} text @param {string} [className] @returns {Cell} */
export function number(text, className = '') {
  return { text, className: `number ${className}`.trim() };
}
