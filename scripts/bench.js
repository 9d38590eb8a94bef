/*
 * npm run bench: the experiment `bench`, which writes docs/bench.md, and then all runs of `npm run million` with fewer streams, which
 * write docs/bench/. Options go to the experiment.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { exitWith } from '../lib/errors.js';
import { readVersion } from '../lib/version.js';
import { experimentNames } from './lab/experiment.js';
import { pageOf, RUNS } from './lab/million/runs.js';

const PAGE = 'docs/bench.md';
const HELP = `Usage: npm run bench -- [options]

Runs the experiment bench and writes ${PAGE}, then each run of npm run million with --small and writes docs/bench/: about 35 minutes in
all. The options are those of node scripts/experiment.js bench; see its --help.
`;

/** @param {string} script @param {string[]} args @returns {Promise<number>} its status */
async function run(script, ...args) {
  const path = fileURLToPath(new URL(script, import.meta.url));
  const [code] = await once(spawn(process.execPath, [path, ...args], { stdio: 'inherit' }), 'exit');
  return code ?? 1;
}

async function main() {
  const args = process.argv.slice(2);
  if (args.includes('--help') || args.includes('-h')) return void process.stdout.write(HELP);
  if (args.includes('--version')) return void process.stdout.write(`${readVersion()}\n`);
  process.on('SIGINT', () => {}); // the terminal sends it to the children too, which end in order
  let status = await run('experiment.js', 'bench', '--to', PAGE, ...args);
  for (const one of RUNS.filter(({ experiment }) => experimentNames().includes(experiment))) {
    if (status !== 0) break;
    const flags = one.flag ? [`--${one.flag}`] : [];
    status = await run('million.js', ...flags, '--small', '--dashboard', 'off', '--to', pageOf(one, true));
  }
  process.exit(status);
}

main().catch((error) => exitWith('bench', error));
