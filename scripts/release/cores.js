/*
 * The prebuilt native cores in the package: for which machine each really is, and what it needs from it.
 */
import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { HoldfastError, messageOf } from '../../lib/errors.js';
import { machineHere, targetOf } from '../../native/prebuilt.js';
import { PROTOCOL } from '../../native/protocol.js';

const MACHINES = { x64: 'Advanced Micro Devices X86-64', arm64: 'AArch64' };
const LIBRARIES = {
  gnu: /^(libc\.so\.6|libpthread\.so\.0|libdl\.so\.2|libm\.so\.6|librt\.so\.1|ld-linux-[\w-]+\.so\.[12])$/,
  musl: /^libc\.so$/,
};

/** @typedef {{ machine: string, libraries: string[], glibc: string[], exports: string[] }} Elf */

/** @param {string} path @returns {Elf} */
export function readElf(path) {
  const args = ['--wide', '--file-header', '--dynamic', '--version-info', '--dyn-syms', path];
  const { error, status, stdout } = spawnSync('readelf', args, {
    encoding: 'utf8',
    env: { ...process.env, LC_ALL: 'C' },
  });
  if (error || status !== 0) throw new HoldfastError('NO_READELF', 'readelf is needed (Debian: binutils)');
  return parseElf(stdout);
}

/** @param {string} text what readelf says @returns {Elf} */
export function parseElf(text) {
  const all = (/** @type {RegExp} */ pattern) => [
    ...new Set([...text.matchAll(pattern)].map(([, name]) => name)),
  ];
  return {
    machine: /^ +Machine: +(.+)$/m.exec(text)?.[1] ?? '',
    libraries: all(/Shared library: \[(.+?)\]/g),
    glibc: all(/\bGLIBC_([\w.]+)/g),
    exports: all(/ (?:GLOBAL|WEAK) +DEFAULT +\d+ (\w+)$/gm),
  };
}

/** @param {import('../prebuilt/targets.js').Target} target @param {Elf} elf @returns {string[]} */
export function elfProblems({ name, glibc }, { machine, libraries, glibc: versions, exports }) {
  const [, cpu, libc] = name.split('-');
  const expected = MACHINES[/** @type {keyof typeof MACHINES} */ (cpu)];
  const allowed = LIBRARIES[/** @type {keyof typeof LIBRARIES} */ (libc)];
  const newer = versions.filter((version) => !glibc || isNewer(version, glibc));
  const promise = glibc ? `promised is ${glibc}` : 'it is for musl';
  return [
    ...(machine === expected ? [] : [`it is for '${machine}'`]),
    ...libraries.filter((library) => !allowed.test(library)).map((library) => `it needs ${library}`),
    ...newer.map((version) => `it needs GLIBC_${version}, and ${promise}`),
    ...(exports.includes('napi_register_module_v1') ? [] : ['it is no addon of Node']),
  ];
}

/** @param {string} version @param {string} than @returns {boolean} also for GLIBC_PRIVATE and the like */
function isNewer(version, than) {
  if (!/^\d+(\.\d+)*$/.test(version)) return true;
  return version.localeCompare(than, 'en', { numeric: true }) > 0;
}

/**
 * @param {Buffer} bytes of the file
 * @param {string[]} paths of this machine
 * @returns {string[]}
 */
export function pathProblems(bytes, paths) {
  return paths.filter((path) => bytes.includes(path)).map((path) => `it contains ${path}`);
}

/**
 * @param {import('../prebuilt/manifest.js').Entry | undefined} entry
 * @param {{ sha256: string, sources: string }} now hashes of the file and of the sources
 * @returns {string[]}
 */
export function entryProblems(entry, { sha256, sources }) {
  if (!entry) return ['prebuilt.json does not know it'];
  return [
    ...(entry.sha256 === sha256 ? [] : ['it is not the file that prebuilt.json describes']),
    ...(entry.sources === sources ? [] : ['it was built from other sources: run npm run prebuilt']),
  ];
}

/** @param {string} target @param {string} path @returns {string[]} for the one that this machine can load */
export function loadProblems(target, path) {
  if (target !== targetOf(machineHere())) return [];
  try {
    const { number } = createRequire(import.meta.url)(path).protocol();
    return number === PROTOCOL ? [] : [`it speaks protocol ${number}, and the package ${PROTOCOL}`];
  } catch (error) {
    return [`it does not load: ${messageOf(error)}`];
  }
}
