import assert from 'node:assert/strict';
import { copyFileSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { Resvg } from '@resvg/resvg-js';
import { hasFont } from '../scripts/plot/picture.js';
import { ROOT, run, temporaryFolder } from './helpers/server.js';

const FIXTURES = join(ROOT, 'test/fixtures/plot');
const CHART_IDS = ['memory', 'cpu', 'ticks', 'streams'];

/** @param {import('node:test').TestContext} t @param {string[]} args */
async function plot(t, ...args) {
  const process_ = run(t, process.execPath, ['scripts/plot.js', ...args]);
  const { code } = await process_.exit;
  return { code, ...process_.output };
}

/** @param {string} svg @returns {string} its text */
function textOf(svg) {
  return [...svg.matchAll(/<text[^>]*>(.*?)<\/text>/g)]
    .map(([, text]) => text.replace(/<[^>]*>/g, '\n').trim())
    .join('\n');
}

/** @param {Buffer} png @returns {Set<number>} the colours of pixels that are not transparent */
function colorsOf(png) {
  const [width, height] = [png.readUInt32BE(16), png.readUInt32BE(20)];
  const image = `data:image/png;base64,${png.toString('base64')}`;
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}"><image href="${image}" width="${width}" height="${height}"/></svg>`;
  const { pixels } = new Resvg(svg).render();
  /** @type {Set<number>} */
  const colors = new Set();
  for (let at = 0; at < pixels.length; at += 4) if (pixels[at + 3] > 0) colors.add(pixels.readUInt32BE(at));
  return colors;
}

test('one CSV becomes four SVGs and a page beside it, and the output lists them', async (t) => {
  const folder = temporaryFolder(t);
  for (const name of ['hold.csv', 'hold.json']) copyFileSync(join(FIXTURES, name), join(folder, name));
  const { code, stdout, stderr } = await plot(t, join(folder, 'hold.csv'));
  assert.deepEqual([code, stderr], [0, '']);
  const names = [...CHART_IDS.map((id) => `hold.${id}.svg`), 'hold.html'];
  assert.deepEqual(readdirSync(folder).sort(), [...names, 'hold.csv', 'hold.json'].sort());
  for (const name of names) assert.ok(stdout.includes(`wrote ${join(folder, name)}\n`), name);
  assert.match(stdout, /open streams, max +6,000\n/);
});

test('each axis of each SVG has a unit, and the machine is named', async (t) => {
  const folder = temporaryFolder(t);
  await plot(t, join(FIXTURES, 'hold.csv'), '--out', folder, '--format', 'svg');
  const units = {
    memory: ['memory (MB)'],
    cpu: ['CPU (% of one core)'],
    ticks: ['tick (ms, log scale)'],
    streams: ['streams and pings (1/s)', 'ping lateness (ms)'],
  };
  for (const [id, titles] of Object.entries(units)) {
    const text = textOf(readFileSync(join(folder, `hold.${id}.svg`), 'utf8'));
    for (const title of [...titles, 'streams (count)', 'time since the start (m:ss)', 'CPU of the fixture']) {
      assert.ok(text.includes(title), `${id}: ${title} in ${text}`);
    }
    assert.ok(!/NaN|undefined|null/.test(text), text);
  }
});

test('each line has a label, and the streams are dashed', async (t) => {
  const folder = temporaryFolder(t);
  await plot(t, join(FIXTURES, 'hold.csv'), '--out', folder, '--format', 'svg');
  const labels = {
    memory: ['kernel', 'native', 'JS heap', 'whole machine'],
    cpu: ['total', 'processes', 'user', 'sys'],
    ticks: ['avg', 'p90', 'max'],
    streams: ['pings', 'opened', 'closed', 'p99', 'p50', 'max'],
  };
  for (const [id, names] of Object.entries(labels)) {
    const svg = readFileSync(join(folder, `hold.${id}.svg`), 'utf8');
    const lines = textOf(svg).split('\n');
    for (const name of [...names, 'streams']) assert.ok(lines.includes(name), `${id}: ${name}`);
    assert.match(svg, /stroke-dasharray="3,3"/);
    assert.ok(!/NaN/.test(svg), id);
  }
});

test('a PNG has lines in their colours, and text', async (t) => {
  const folder = temporaryFolder(t);
  const { code, stderr } = await plot(t, join(FIXTURES, 'hold.csv'), '--out', folder, '--format', 'png');
  assert.deepEqual([code, readdirSync(folder).length], [0, 4]);
  if (!hasFont()) assert.match(stderr, /no font was found, so the PNGs have no text/);
  for (const id of CHART_IDS) {
    const png = readFileSync(join(folder, `hold.${id}.png`));
    assert.ok(png.readUInt32BE(16) > 1000, 'width');
    assert.ok(colorsOf(png).size > 100, `${id}: ${colorsOf(png).size} colours`);
  }
  assert.ok(colorsOf(readFileSync(join(folder, 'hold.cpu.png'))).has(0x8e44adff), 'total');
});

test('formats can be a list or repeated options', async (t) => {
  const [list, each] = [temporaryFolder(t), temporaryFolder(t)];
  await plot(t, join(FIXTURES, 'http.csv'), '--out', list, '--format', 'png,html');
  await plot(t, join(FIXTURES, 'http.csv'), '--out', each, '--format', 'png', '--format', 'html');
  assert.equal(readdirSync(list).length, 5);
  assert.deepEqual(readdirSync(list), readdirSync(each));
});

test('several CSVs become one set of charts and a table of differences', async (t) => {
  const folder = join(temporaryFolder(t), 'new');
  const { code, stdout } = await plot(
    t,
    ...['hold', 'http', 'ancestor'].map((name) => join(FIXTURES, `${name}.csv`)),
    '--out',
    folder,
  );
  assert.equal(code, 0);
  assert.equal(readdirSync(folder).length, 5);
  const text = textOf(readFileSync(join(folder, 'hold-vs-2-others.memory.svg'), 'utf8'));
  for (const part of ['A hold', 'B http', 'C ancestor', 'memory: kernel (GB)'])
    assert.ok(text.includes(part), part);
  assert.match(stdout, /A hold +B http +C ancestor\n/);
  assert.match(stdout, /tick, max .*ms.*ms \([+−×].*\) +\d+ ms \(/);
  assert.match(readFileSync(join(folder, 'hold-vs-2-others.html'), 'utf8'), /with the difference from A/);
});

test('runs with the same name get the names of their folders', async (t) => {
  const folder = temporaryFolder(t);
  copyFileSync(join(FIXTURES, 'http.csv'), join(folder, 'hold.csv'));
  const { stdout } = await plot(
    t,
    join(FIXTURES, 'hold.csv'),
    join(folder, 'hold.csv'),
    '--out',
    folder,
    '--format',
    'html',
  );
  assert.match(stdout, /A plot-hold +B holdfast-\w+-hold\n/);
});

test('an incomplete CSV is plotted as far as possible, with a line for each thing that is missing', async (t) => {
  const folder = temporaryFolder(t);
  const text = readFileSync(join(FIXTURES, 'hold.csv'), 'utf8');
  writeFileSync(join(folder, 'empty.csv'), '');
  writeFileSync(join(folder, 'cut.csv'), text.slice(0, 5000));
  writeFileSync(join(folder, 'few.csv'), 'elapsedMs,streams,moon\r\n0,1,2\r\n1000,3,4\r\n');
  const lacks = {
    empty: [/the file is empty/],
    cut: [/last row is incomplete/],
    few: [/unknown columns, ignored: moon/, /missing columns: slabBytes/],
  };
  for (const [name, patterns] of Object.entries(lacks)) {
    const { code, stderr } = await plot(t, join(folder, `${name}.csv`), '--format', 'svg,html');
    const lines = stderr.trimEnd().split('\n');
    assert.equal(code, 0, stderr);
    assert.equal(lines.length, patterns.length, stderr);
    for (const [i, pattern] of patterns.entries()) assert.match(lines[i], pattern);
    assert.ok(existsSync(join(folder, `${name}.html`)));
  }
  assert.match(textOf(readFileSync(join(folder, 'few.ticks.svg'), 'utf8')), /no values for tick in this CSV/);
});

test('what cannot be plotted gives one line and status 1, and nothing is written', async (t) => {
  const folder = temporaryFolder(t);
  writeFileSync(join(folder, 'text.csv'), '# no CSV\n');
  const good = join(FIXTURES, 'hold.csv');
  /** @type {[string[], RegExp][]} */
  const cases = [
    [[join(folder, 'absent.csv')], /absent\.csv: there is no such file/],
    [[good, join(folder, 'text.csv')], /text\.csv is not the CSV of a run/],
    [[good, '--out', join(folder, 'text.csv')], /can't write to .*: it is a file, not a folder/],
    [[good, '--format', 'gif'], /--format got 'gif': expected svg, png, html/],
    [[good, '--nonsense'], /Unknown option '--nonsense'; see --help/],
    [[], /no CSV given/],
  ];
  for (const [args, pattern] of cases) {
    const { code, stdout, stderr } = await plot(t, '--out', folder, ...args);
    assert.deepEqual([code, stdout], [1, ''], stderr);
    assert.match(stderr, /^plot: [^\n]*\n$/);
    assert.match(stderr, pattern);
  }
  assert.deepEqual(readdirSync(folder), ['text.csv']);
});

test('--help explains the options and the sidecar file', async (t) => {
  const { code, stdout } = await plot(t, '--help');
  assert.equal(code, 0);
  for (const part of ['--out', '--format', '"machine"']) assert.ok(stdout.includes(part), part);
});
