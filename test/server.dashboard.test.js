/*
 * The dashboard as a user sees it, in a real terminal.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { get, rawClient } from './helpers/client.js';
import { run, temporaryFolder } from './helpers/server.js';
import { hasTmux, openTerminal } from './helpers/tmux.js';
import { until } from './helpers/until.js';

const hasScript = !spawnSync('script', ['--version']).error;
const skip = !hasTmux() && 'tmux is not installed (Debian: tmux)';

/** @param {import('node:test').TestContext} t @param {string} [more] options */
const commandOf = (t, more = '') =>
  `${process.execPath} server.js --port 0 --admin-port 0 --refresh 200 --drain 100 --log-dir ${temporaryFolder(t)} ${more}`;

/** @param {string} screen @param {number} columns @param {number} rows every border is whole, and of box characters */
function assertDrawn(screen, columns, rows) {
  const lines = screen.split('\n');
  assert.equal(lines.filter((line) => line.startsWith('┌─')).length, 4, screen);
  assert.equal(lines.filter((line) => line.startsWith('└─')).length, 4, screen);
  assert.match(lines[rows - 1], new RegExp(`^└─{${columns - 2}}┘$`));
  for (const line of lines.slice(1, rows)) assert.equal(line.length, columns, line);
  assert.doesNotMatch(screen, /qqq|lq|\uFFFD/);
}

test('at 80x24 the ticks of a worker are not cut off, and the table uses every line', { skip }, async (t) => {
  const command = commandOf(t, '--workers 4');
  const terminal = openTerminal(t, { columns: 80, rows: 24, command });
  await terminal.untilShown(/│1 .* \d+\.\d\/\d+\.\d\/\d+(\.\d)? *│[\s\S]*│3 +\d/);
});

for (const term of ['xterm-256color', 'screen-256color']) {
  test(`it is drawn correctly at 80x24, at 160x48, and after a resize, in ${term}`, { skip }, async (t) => {
    const terminal = openTerminal(t, { columns: 80, rows: 24, term, command: commandOf(t) });
    const shown =
      /Holdfast 00:\d\d:\d\d[\s\S]*streams 0 \+0 -0[\s\S]*ticks ms avg \d+[\s\S]*primary +\d+[\s\S]*room for[\s\S]*listening on http/;
    assertDrawn(await terminal.untilShown(shown), 80, 24);
    terminal.resize(160, 48);
    assertDrawn(await terminal.untilShown(/listening on http[\s\S]*└─{158}┘/), 160, 48);
    terminal.resize(50, 15);
    await terminal.untilShown(/The dashboard needs 60x20/);
    terminal.resize(80, 24);
    assertDrawn(await terminal.untilShown(shown), 80, 24);
    terminal.type('q');
    await terminal.untilShown(/holdfast: ran for [\s\S]*status 0/);
  });
}

test('in a terminal without a width, lines are written instead', {
  skip: !hasScript && 'script is not installed (Debian: bsdutils)',
}, async (t) => {
  const line = `stty cols 0 rows 0; exec ${commandOf(t)}`;
  const { output } = run(t, 'script', ['-qfec', line, '/dev/null']);
  await until(
    () => /streams 0 \(\+0 -0\)/.test(output.stdout),
    () => output.stdout,
  );
});

test('the keys do what the help says', { skip }, async (t) => {
  const withoutHelp = /^(?![\s\S]*┌─ help ─)[\s\S]*│1 +\d/;
  const terminal = openTerminal(t, {
    columns: 80,
    rows: 24,
    command: commandOf(t, '--workers 6 --drain 60000'),
  });
  await terminal.untilShown(/│1 +\d/);
  terminal.type('?');
  await terminal.untilShown(/collect garbage in every worker now/);
  terminal.type('?');
  await terminal.untilShown(withoutHelp);
  terminal.type('?');
  assert.match(
    await terminal.untilShown(/┌─ help ─/),
    /│ native +memory of the workers minus their JS heap +│/,
  );
  terminal.type('Escape');
  await terminal.untilShown(withoutHelp); // a key that follows Escape too soon is one key with it: Alt-g
  terminal.type('g');
  await terminal.untilShown(/requested GC in every worker/);
  for (let i = 0; i < 6; i++) terminal.type('Down');
  await terminal.untilShown(/│6 +\d/);
  for (let i = 0; i < 6; i++) terminal.type('Up');
  await terminal.untilShown(/│primary +\d/);
});

test('a second q ends the drain immediately, and the terminal is restored', { skip }, async (t) => {
  const terminal = openTerminal(t, { columns: 160, rows: 48, command: commandOf(t, '--drain 60000') });
  const screen = await terminal.untilShown(/listening on http/);
  const port = Number(/listening on http:\S+:(\d+)/.exec(screen)?.[1]);
  const clients = Array.from({ length: 20 }, () => rawClient(port, get()));
  await terminal.untilShown(/streams 20 /);
  terminal.type('q');
  await terminal.untilShown(/draining over 60000 ms/);
  terminal.type('q');
  await terminal.untilShown(/status 130/);
  assert.doesNotMatch(terminal.read(), /┌─/);
  for (const client of clients) client.close();
});
