/*
 * The native core and the load generator, checked with their own tools: tests, clippy without warnings, rustfmt.
 */
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

/** @type {Record<string, string>} */
const FOLDERS = { 'native core': '../native/', 'load generator': '../fleet/generator/' };

/** @type {Record<string, string[]>} */
const RUNS = {
  'its tests pass': ['test', '--workspace', '--locked', '--quiet'],
  'clippy has no warnings': [
    'clippy',
    '--workspace',
    '--all-targets',
    '--locked',
    '--quiet',
    '--',
    '-D',
    'warnings',
  ],
  'it is formatted': ['fmt', '--all', '--check'],
};

for (const [name, folder] of Object.entries(FOLDERS)) {
  const cwd = fileURLToPath(new URL(folder, import.meta.url));
  for (const [what, args] of Object.entries(RUNS)) {
    test(`the ${name}: ${what}`, (t) => {
      const version = args[0] === 'test' ? ['--version'] : [args[0], '--version'];
      if (spawnSync('cargo', version).status !== 0) return t.skip(`cargo ${args[0]} is not installed`);
      const { status, stdout, stderr } = spawnSync('cargo', args, { cwd, encoding: 'utf8' });
      if (status !== 0) throw new Error(`cargo ${args.join(' ')}\n${stdout}\n${stderr}`);
    });
  }
}
