/*
 * The native cores that come with the package, one file per kind of machine, so that nobody needs Rust to install it.
 * `npm run prebuilt` makes them.
 */
import { fileURLToPath } from 'node:url';

/** The oldest glibc that they run with: Rust itself needs as much. */
export const GLIBC = '2.17';

/** What the package promises. */
export const TARGETS = ['linux-x64-gnu', 'linux-arm64-gnu', 'linux-x64-musl', 'linux-arm64-musl'];

export const FOLDER = fileURLToPath(new URL('prebuilt/', import.meta.url));

/** @typedef {{ platform: string, arch: string, glibc: string }} Machine `glibc` is its version; '' with another libc */

/** @returns {Machine} */
export function machineHere() {
  const { platform, arch } = process;
  return { platform, arch, glibc: platform === 'linux' ? glibcHere() : '' };
}

/** @returns {string} the version of the glibc in this process; '' with another libc */
function glibcHere() {
  // The types of Node don't have excludeNetwork yet.
  const report = /** @type {NodeJS.ProcessReport & { excludeNetwork?: boolean }} */ (process.report);
  const { excludeNetwork } = report;
  report.excludeNetwork = true; // it would resolve the addresses of all sockets
  const { header } = /** @type {{ header: { glibcVersionRuntime?: string } }} */ (report.getReport());
  report.excludeNetwork = excludeNetwork;
  return header.glibcVersionRuntime ?? '';
}

/** @param {Machine} machine @returns {string} such as linux-x64-gnu, promised or not */
export function targetOf({ platform, arch, glibc }) {
  if (platform !== 'linux') return `${platform}-${arch}`;
  return `${platform}-${arch}-${glibc === '' ? 'musl' : 'gnu'}`;
}

/** @param {string} target @returns {string} the path of its file */
export const fileOf = (target) => `${FOLDER}${target}.node`;

/**
 * @param {Machine} machine
 * @param {string} problem what the loader of the system says about its file
 * @returns {string} the same, or the cause if it is known
 */
export function causeOf({ glibc }, problem) {
  if (!/version `GLIBC_/.test(problem)) return problem;
  return `needs glibc ${GLIBC} or later, and this system has ${glibc}`;
}
