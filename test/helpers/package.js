/*
 * The package as others install it: packed, and installed into an empty folder with the registry this machine uses.
 */
import { spawnSync } from 'node:child_process';
import { accessSync, constants, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { machineHere, targetOf } from '../../native/prebuilt.js';
import { ROOT, temporaryFolder } from './server.js';

/** Without what `npm test` sets for its own package, so that npm takes the folder it runs in for the project. */
export const ENV = Object.fromEntries(
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
 * Makes the prebuilt core for this machine; it is kept between runs.
 * @returns {string} why that is not possible here, or ''
 */
export function prebuild() {
  if (process.platform !== 'linux') return 'a native core is prebuilt only for Linux';
  if (spawnSync('cargo', ['--version']).error) return 'cargo is not installed';
  const args = ['scripts/prebuilt.js', targetOf(machineHere())];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: ROOT, encoding: 'utf8' });
  if (status === 0) return '';
  const problem = /^prebuilt: .*: not built: (can't install ziglang.*)$/m.exec(stdout)?.[1];
  if (problem) return problem;
  throw new Error(`${args.join(' ')} exited with status ${status}: ${stdout}${stderr}`);
}

/**
 * What someone has who has Node and no Rust.
 * @param {import('./server.js').Scope} t
 * @returns {string} a folder for PATH
 */
export function toolsWithoutCargo(t) {
  const folder = temporaryFolder(t);
  symlinkSync(process.execPath, join(folder, 'node'));
  for (const name of ['npm', 'npx', 'curl', 'bash', 'sh', 'env'])
    symlinkSync(findProgram(name), join(folder, name));
  return folder;
}

/** @param {string} name @returns {string} */
function findProgram(name) {
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    try {
      accessSync(join(folder, name), constants.X_OK);
      return join(folder, name);
    } catch {}
  }
  throw new Error(`${name} is not in PATH`);
}

/**
 * @param {import('node:test').TestContext} t
 * @param {string} tarball
 * @param {Record<string, string>} env
 * @param {string[]} [more] flags of npm
 * @returns {string} a folder in which it is installed as the only dependency
 */
export function install(t, tarball, env, more = []) {
  return installSaying(t, tarball, env, more).folder;
}

/**
 * @param {import('node:test').TestContext} t
 * @param {string} tarball
 * @param {Record<string, string>} env
 * @param {string[]} [more] flags of npm
 * @returns {{ folder: string, stdout: string }} the same, and what npm and the package said
 */
export function installSaying(t, tarball, env, more = []) {
  const folder = temporaryFolder(t);
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }\n');
  const flags = ['--prefer-offline', '--no-audit', '--no-fund', '--foreground-scripts', ...more];
  const stdout = npm(['install', ...flags, tarball], { cwd: folder, env: { ...ENV, ...env } });
  return { folder, stdout };
}

/** @param {string} folder @returns {number} bytes of all files in it */
export function sizeOf(folder) {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  return files.reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0);
}
