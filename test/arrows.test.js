/*
 * Imports between folders go one way. This is the table of DESIGN.md, and every import is checked against it.
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, sep } from 'node:path';
import { test } from 'node:test';
import { ROOT } from './helpers/server.js';

/** What the files of each folder may import besides their own folder, `node:` and packages. @type {Record<string, string[]>} */
const ARROWS = {
  'index.js': ['hub', 'transport'],
  'server.js': ['primary', 'hub', 'monitor', 'transport', 'limits', 'lib'],
  'worker.js': [
    'primary/messages.js',
    'primary/handover/steps.js',
    'broker/remote.js',
    'hub',
    'transport',
    'lib',
  ],
  primary: [
    'hub/nodes/index.js',
    'hub/presence/index.js',
    'hub/presence/server.js',
    'hub/presence/messages.js', // these two for types
    'hub/presence/moves.js',
    'hub/protocol/posts.js',
    'hub/revocations.js',
    'hub/serveroptions.js',
    'hub/settings.js',
    'monitor/csv.js',
    'broker',
    'transport/index.js',
    'native/index.js',
    'native/types.js',
    'limits',
    'lib',
  ],
  broker: ['lib'],
  monitor: ['lib'],
  hub: ['broker', 'lib'],
  transport: ['native', 'lib'],
  limits: ['lib'],
  native: [],
  lib: [],
  fleet: ['native', 'limits', 'lib', 'monitor/fields.js'],
  scripts: ['fleet', 'monitor', 'native', 'limits', 'lib', 'examples'],
  examples: [], // only the package, as users import it
};

/** The same inside hub/. @type {Record<string, string[]>} */
const HUB_ARROWS = {
  matching: [],
  access: ['matching'],
  presence: ['access', 'matching'],
  nodes: ['presence', 'revocations.js'], // the last one for types
  streams: ['presence', 'access', 'matching'],
  protocol: ['streams', 'presence', 'access', 'matching', 'index.js', 'settings.js'], // the last two for types
};

/** Static and dynamic imports, and `import('…')` of types in comments. */
const IMPORT = /\b(?:from|import)\s*\(?\s*['"](\.[^'"]+)['"]/g;

/** @param {string} folder or file @returns {string[]} its files, from the root */
function filesOf(folder) {
  if (folder.endsWith('.js')) return [folder];
  const names = readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' });
  return names
    .filter((name) => /(^|\/)(?!node_modules\/)[^/]+\.(js|mjs|cjs)$/.test(name))
    .map((name) => join(folder, name));
}

/** @param {string} file @returns {string[]} the files it imports, types included */
function importsOf(file) {
  const text = readFileSync(join(ROOT, file), 'utf8');
  return [...text.matchAll(IMPORT)].map(([, path]) => normalize(join(dirname(file), path)));
}

/** @param {string} file @param {string} target */
function isAllowed(file, target) {
  const [folder] = file.split(sep);
  const [targetFolder] = target.split(sep);
  return folder === targetFolder || ARROWS[folder].some((one) => one === targetFolder || one === target);
}

for (const folder of Object.keys(ARROWS)) {
  test(`${folder} imports only what it may`, () => {
    const wrong = filesOf(folder).flatMap((file) =>
      importsOf(file)
        .filter((target) => !isAllowed(file, target))
        .map((target) => `${file} imports ${target}`),
    );
    assert.deepEqual(wrong, []);
  });
}

for (const [folder, allowed] of Object.entries(HUB_ARROWS)) {
  test(`hub/${folder} imports only what it may`, () => {
    const wrong = filesOf(join('hub', folder)).flatMap((file) =>
      importsOf(file)
        .filter((target) => target.startsWith(`hub${sep}`))
        .filter((target) => ![folder, ...allowed].includes(target.split(sep)[1]))
        .map((target) => `${file} imports ${target}`),
    );
    assert.deepEqual(wrong, []);
  });
}

test('the arrows have no cycle', () => {
  /** @param {string} folder @param {string[]} path that led to it */
  const follow = (folder, path) => {
    assert.ok(!path.includes(folder), [...path, folder].join(' → '));
    for (const target of ARROWS[folder]) follow(target.split('/')[0], [...path, folder]);
  };
  for (const folder of Object.keys(ARROWS)) follow(folder, []);
});

test('every file of ours is in a folder of the table', () => {
  const known = [...Object.keys(ARROWS), 'test', 'docs', 'logs', 'node_modules'];
  const found = readdirSync(ROOT, { withFileTypes: true })
    .filter((entry) => !entry.name.startsWith('.') && (entry.isDirectory() || entry.name.endsWith('.js')))
    .map((entry) => entry.name);
  for (const name of found) assert.ok(known.includes(name), name);
});
