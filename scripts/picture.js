/*
 * npm run picture: draws the pictures in the README. Runs the demo in tmux, waits until all streams are open, captures the terminal
 * as an SVG (docs/dashboard.svg), and the dashboard in Chromium as a PNG (docs/web-dashboard.png).
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import { exitWith, HoldfastError } from '../lib/errors.js';
import { optionLines } from '../lib/help.js';
import { integer, option, readOptions, text } from '../lib/options.js';
import { freePort } from '../lib/port.js';
import { readVersion } from '../lib/version.js';
import { ROOT } from './lab/server.js';
import { pathIn, shown } from './lab/session.js';
import { fillTopics } from './picture/audience.js';
import { drawPage } from './picture/page.js';
import { parseScreen } from './picture/screen.js';
import { renderScreen } from './picture/svg.js';

const SIZE = { columns: 100, rows: 30 };
const STREAMS = 5000;
const OPEN_S = 120;
const POLL_MS = 500;

const OPTIONS = [
  option('hold', 'holdS', integer(0, 3600), 40, 'seconds to hold the streams before the picture'),
  option('to', 'to', text('FILE', 'a file'), 'docs/dashboard.svg', 'where to write that of the terminal'),
  option('page', 'page', text('FILE', 'a file'), 'docs/web-dashboard.png', 'where to write that of the page'),
];

async function main() {
  const { values, help, version } = readOptions(OPTIONS, process.argv.slice(2), {});
  const usage = `Usage: npm run picture -- [options]\n\n${optionLines(OPTIONS)}\n`;
  if (help) return void process.stdout.write(usage);
  if (version) return void process.stdout.write(`${readVersion()}\n`);
  const { holdS, to, page } = /** @type {{ holdS: number, to: string, page: string }} */ (values);
  const [port, adminPort] = [await freePort(0, '127.0.0.1'), await freePort(0, '127.0.0.1')];
  const audience = new AbortController();
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-picture-'));
  const terminal = new Terminal(demoCommand(port, adminPort, folder));
  try {
    await untilOpen(adminPort, terminal);
    fillTopics(port, adminPort, audience.signal);
    await after(holdS * 1000);
    writeFileSync(pathIn(to), renderScreen(parseScreen(terminal.capture())));
    await drawPage(`http://127.0.0.1:${adminPort}/`, pathIn(page));
  } finally {
    audience.abort();
    await terminal.close();
    rmSync(folder, { recursive: true });
  }
  process.stdout.write(`${shown(pathIn(to))}\n${shown(pathIn(page))}\n`);
}

/** @param {number} port @param {number} adminPort @param {string} folder for its CSV @returns {string} */
function demoCommand(port, adminPort, folder) {
  const ports = ['--port', port, '--admin-port', adminPort];
  const how = ['--transport', 'hold', '--drain', 0, '--log-dir', folder];
  return [process.execPath, 'scripts/demo.js', ...ports, ...how].join(' ');
}

/** @param {number} adminPort @param {Terminal} terminal @throws {HoldfastError} NO_PICTURE */
async function untilOpen(adminPort, terminal) {
  const endMs = Date.now() + OPEN_S * 1000;
  while ((await streamsOf(adminPort)) < STREAMS) {
    if (!terminal.isOpen()) throw noPicture('the demo ended; npm run demo shows why');
    if (Date.now() > endMs) throw noPicture(`the demo did not open ${STREAMS} streams within ${OPEN_S} s`);
    await after(POLL_MS);
  }
}

/** @param {string} why */
function noPicture(why) {
  return new HoldfastError('NO_PICTURE', why);
}

/** @param {number} adminPort @returns {Promise<number>} 0 while there is no answer */
async function streamsOf(adminPort) {
  try {
    const frame = await (await fetch(`http://127.0.0.1:${adminPort}/frame`)).json();
    return frame.totals.streams;
  } catch {
    return 0;
  }
}

/** A program in tmux. */
class Terminal {
  /** @param {string} command @throws {HoldfastError} NO_TMUX */
  constructor(command) {
    this.name = `holdfast-picture-${process.pid}`;
    const size = ['-x', String(SIZE.columns), '-y', String(SIZE.rows)];
    const { error, stderr } = this.tmux('new-session', '-d', ...size, `TERM=screen-256color ${command}`);
    if (error || stderr)
      throw new HoldfastError('NO_TMUX', `the picture needs tmux: ${error?.message ?? stderr.trim()}`);
  }

  /** @param {string[]} args */
  tmux(...args) {
    const own = ['-u', '-L', this.name, '-f', '/dev/null'];
    return spawnSync('tmux', [...own, ...args], { cwd: ROOT, encoding: 'utf8' });
  }

  /** @returns {string} the screen, with colours */
  capture() {
    return this.tmux('capture-pane', '-ep').stdout;
  }

  isOpen() {
    return this.tmux('has-session').status === 0;
  }

  /** Quits the demo, which ends the session. */
  async close() {
    this.tmux('send-keys', 'q');
    for (let i = 0; i < 20 && this.isOpen(); i++) await after(POLL_MS);
    this.tmux('kill-server');
  }
}

main().catch((error) => exitWith('picture', error));
