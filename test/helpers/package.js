/*
 * The package as others install it: packed, and installed into an empty folder with the registry this machine uses.
 */
import { spawnSync } from 'node:child_process';
import { readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT, temporaryFolder } from './server.js';

/** Without what `npm test` sets for its own package, so that npm takes the folder it runs in for the project. */
const ENV = Object.fromEntries(
  Object.entries(process.env).filter(
    ([name]) => !/^npm_(package|lifecycle|config_local_prefix)|^INIT_CWD$/.test(name),
  ),
);

/** @param {string[]} args @param {import('node:child_process').SpawnSyncOptions} options @returns {string} stdout */
function npm(args, options) {
  const { status, stdout, stderr } = spawnSync('npm', args, { env: ENV, ...options, encoding: 'utf8' });
  if (status !== 0) throw new Error(`npm ${args.join(' ')} exited with status ${status}: ${stdout}${stderr}`);
  return stdout;
}

/**
 * @param {import('node:test').TestContext} t
 * @returns {{ tarball: string, files: string[] }} the files it contains, from its root
 */
export function pack(t) {
  const folder = temporaryFolder(t);
  const [{ filename, files }] = JSON.parse(
    npm(['pack', '--json', '--pack-destination', folder], { cwd: ROOT }),
  );
  return {
    tarball: join(folder, filename),
    files: files.map((/** @type {{ path: string }} */ { path }) => path),
  };
}

/**
 * @param {import('node:test').TestContext} t
 * @param {string} tarball
 * @param {Record<string, string>} env
 * @returns {string} a folder in which it is installed as the only dependency
 */
export function install(t, tarball, env) {
  const folder = temporaryFolder(t);
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }\n');
  const flags = ['--prefer-offline', '--no-audit', '--no-fund', '--foreground-scripts'];
  npm(['install', ...flags, tarball], { cwd: folder, env: { ...ENV, ...env } });
  return folder;
}

/** @param {string} folder @returns {number} bytes of all files in it */
export function sizeOf(folder) {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  return files.reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0);
}
