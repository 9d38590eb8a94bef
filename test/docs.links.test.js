/*
 * Every link between the documents leads somewhere: the file exists, and so does the heading.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { ROOT } from './helpers/server.js';

/** @returns {string[]} the documents of the repository, or of the folder if it has none */
function documents() {
  const { stdout } = spawnSync('git', ['ls-files', '-co', '--exclude-standard', '*.md'], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  return stdout.split('\n').filter((name) => name && existsSync(join(ROOT, name)));
}

/** @param {string} text @returns {string} without code, whose brackets are no links */
const proseOf = (text) => text.replace(/^```.*?^```/gms, '').replace(/`[^`\n]*`/g, '');

/** @param {string} path @returns {Set<string>} what can follow the # in a link to the document */
function anchorsIn(path) {
  const text = readFileSync(path, 'utf8').replace(/^```.*?^```/gms, '');
  const headings = [...text.matchAll(/^#+ +(.+)$/gm)].map(([, heading]) => heading);
  return new Set(
    headings.map((heading) =>
      heading
        .toLowerCase()
        .replace(/[^\w\s-]/g, '')

        .replace(/\s/g, '-'),
    ),
  );
}

/** @param {string} document @param {string} target @returns {string} what is wrong with it, or '' */
function problemOf(document, target) {
  const [file, anchor] = target.split('#');
  const path = file ? join(ROOT, dirname(document), decodeURI(file)) : join(ROOT, document);
  if (!existsSync(path)) return `${document}: there is no ${file}`;
  if (!anchor || statSync(path).isDirectory() || !path.endsWith('.md')) return '';
  return anchorsIn(path).has(anchor) ? '' : `${document}: ${file} has no heading #${anchor}`;
}

test('every link between documents leads to a file and a heading', () => {
  const names = documents();
  assert.ok(names.includes('README.md'));
  const problems = names.flatMap((name) => {
    const targets = [...proseOf(readFileSync(join(ROOT, name), 'utf8')).matchAll(/\]\(([^)\s]+)\)/g)];
    return targets
      .map(([, target]) => target)
      .filter((target) => !/^[a-z]+:/.test(target))
      .map((target) => problemOf(name, target))
      .filter(Boolean);
  });
  assert.deepEqual(problems, []);
});
