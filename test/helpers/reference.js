/*
 * Reads docs/api.md as tables, and what they are compared with: index.d.ts and the sources.
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './server.js';

export const read = (/** @type {string} */ file) => readFileSync(join(ROOT, file), 'utf8');
export const API = read('docs/api.md');
export const TYPES = read('index.d.ts');

/** @param {string} heading of any level @returns {string} its text, with that of the headings below it */
export function sectionOf(heading) {
  const [found] = new RegExp(`^(#+) ${heading}$`, 'm').exec(API) ?? [];
  assert.ok(found, heading);
  const level = found.indexOf(' ');
  const rest = API.slice(API.indexOf(`\n${found}\n`) + found.length + 2);
  const end = rest.search(new RegExp(`^#{1,${level}} `, 'm'));
  return end < 0 ? rest : rest.slice(0, end);
}

/** @param {string} section @param {string} head of the first column @returns {string[][]} the cells of its rows */
export function tableIn(section, head) {
  const tables = section.matchAll(/^\| (.+) \|\n\|[-|]+\|\n((?:\|.*\|\n)+)/gm);
  const table = [...tables].find(([, heads]) => heads.split(' | ')[0] === head);
  assert.ok(table, head);
  return table[2]
    .trim()
    .split('\n')
    .map((row) =>
      row
        .slice(1, -1)
        .split('|')
        .map((cell) => cell.trim()),
    );
}

/** @param {string[][]} rows @returns {string[]} what their first cells name, without arguments */
export const namesIn = (rows) => rows.map(([cell]) => (/`([^`(]+)/.exec(cell) ?? ['', cell])[1]);

/** @param {string} name of an interface or class in index.d.ts @returns {string[]} its members, each once */
export function membersOf(name) {
  const [, body] =
    new RegExp(`^export (?:interface|class) ${name}\\b[^{]*\\{\\n(.*?)^\\}`, 'ms').exec(TYPES) ?? [];
  assert.ok(body, name);
  const names = [...body.matchAll(/^ {2}(?:static )?(?:readonly |get )?(\w+)\??[:(<]/gm)].map(
    ([, member]) => member,
  );
  return [...new Set(names)].filter((member) => member !== 'constructor');
}

/** @param {readonly string[]} found @param {readonly string[]} expected */
export const assertSame = (found, expected) => assert.deepEqual([...found].sort(), [...expected].sort());

/** @param {readonly string[]} folders @param {boolean} [withPages] @returns {string} the text of all their files */
export const sourcesIn = (folders, withPages = false) =>
  folders
    .flatMap((folder) =>
      readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
        .filter((file) => file.endsWith('.js') && !/unused\/|web\/page\//.test(file))
        .filter((file) => withPages || !file.includes('web/'))
        .map((file) => read(join(folder, file))),
    )
    .join('\n');

/** @param {string[][]} rows @param {(name: string) => unknown} defaultOf numbers and booleans are compared */
export function assertDefaults(rows, defaultOf) {
  let compared = 0;
  for (const [i, name] of namesIn(rows).entries()) {
    const expected = defaultOf(name);
    const isComputed = /descriptor limit|`shards`/.test(rows[i][1]);
    if (isComputed || !['number', 'boolean'].includes(typeof expected)) continue;
    assert.equal(
      rows[i][1].replaceAll('`', ''),
      typeof expected === 'number' ? expected.toLocaleString('en') : String(expected),
      name,
    );
    compared++;
  }
  assert.ok(compared >= 4, `${compared} defaults compared`);
}
