/*
 * Arrows between rooms run one way: this is the table of DESIGN.md, held to the imports as they are.
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, sep } from 'node:path';
import { test } from 'node:test';
import { ROOT } from './helpers/server.js';

/** What each room may import, besides itself, `node:` and packages. @type {Record<string, string[]>} */
const ARROWS = {
  'server.js': ['primary', 'monitor', 'limits', 'lib', 'transport/index.js'],
  'worker.js': ['primary/messages.js', 'transport', 'lib'],
  primary: ['limits', 'lib'],
  monitor: ['primary', 'lib'],
  transport: ['native', 'lib', 'primary/messages.js'],
  limits: ['lib'],
  native: [],
  lib: ['primary/messages.js'],
  fleet: ['native', 'lib', 'limits'],
  scripts: ['lib', 'limits', 'monitor/fields.js', 'monitor/terminal.js', 'fleet', 'native/index.js'],
};

const IMPORT = /\b(?:from|import)\s*\(?\s*['"](\.[^'"]+)['"]/g;

/** @param {string} room @returns {string[]} its files, from the root */
function filesOf(room) {
  if (room.endsWith('.js')) return [room];
  try {
    const names = readdirSync(join(ROOT, room), { recursive: true, encoding: 'utf8' });
    return names.filter((name) => /\.(js|mjs|cjs)$/.test(name)).map((name) => join(room, name));
  } catch {
    return [];
  }
}

/** @param {string} file @returns {string[]} the files it imports, types included */
function importsOf(file) {
  const text = readFileSync(join(ROOT, file), 'utf8');
  return [...text.matchAll(IMPORT)].map(([, path]) => normalize(join(dirname(file), path)));
}

/** @param {string} file @param {string} target */
function isAllowed(file, target) {
  const [room] = file.split(sep);
  const [targetRoom] = target.split(sep);
  return room === targetRoom || ARROWS[room].some((allowed) => allowed === targetRoom || allowed === target);
}

test('every import follows an arrow', () => {
  const files = Object.keys(ARROWS).flatMap(filesOf);
  assert.ok(files.length > 20);
  for (const file of files) {
    for (const target of importsOf(file))
      assert.ok(isAllowed(file, target), `${file} may not import ${target}`);
  }
});

test('every file of ours lies in a room', () => {
  const known = [...Object.keys(ARROWS), 'test', 'docs', 'logs', 'node_modules'];
  const found = readdirSync(ROOT, { withFileTypes: true })
    .filter((entry) => !entry.name.startsWith('.') && (entry.isDirectory() || entry.name.endsWith('.js')))
    .map((entry) => entry.name);
  for (const name of found) assert.ok(known.includes(name), name);
});
