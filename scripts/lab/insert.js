/*
 * Text that scripts write into a page that people write: between <!-- NAME:start --> and <!-- NAME:end -->. Pure.
 */

/** @param {string} page @param {string} name @param {string} text @returns {string | null} null when the page has no place for it */
export function insertBetween(page, name, text) {
  const [begin, finish] = [`<!-- ${name}:start -->`, `<!-- ${name}:end -->`];
  const [start, end] = [page.indexOf(begin), page.indexOf(finish)];
  if (start < 0 || end < start) return null;
  return `${page.slice(0, start + begin.length)}\n${text}\n${page.slice(end)}`;
}
