/*
 * npm run bench: the experiment `bench`, which writes docs/bench.md, and then the million run with fewer streams, which writes
 * docs/million-50000.md. Options go to the experiment.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { exitWith } from '../lib/errors.js';

const PAGE = 'docs/bench.md';
const SCALED = ['--streams', '50000', '--hold', '60', '--dashboard', 'off', '--to', 'docs/million-50000.md'];

/** @param {string} script @param {string[]} args @returns {Promise<number>} its status */
async function run(script, ...args) {
  const path = fileURLToPath(new URL(script, import.meta.url));
  const [code] = await once(spawn(process.execPath, [path, ...args], { stdio: 'inherit' }), 'exit');
  return code ?? 1;
}

async function main() {
  const args = process.argv.slice(2);
  process.on('SIGINT', () => {}); // the terminal sends it to the children too, which end in order
  const status = await run('experiment.js', 'bench', '--to', PAGE, ...args);
  const isOnlyHelp = args.includes('--help');
  process.exit(status || isOnlyHelp ? status : await run('million.js', ...SCALED));
}

main().catch((error) => exitWith('bench', error));
