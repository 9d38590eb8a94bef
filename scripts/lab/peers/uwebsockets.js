/*
 * uWebSockets. uWebSockets.js is not on npm; the PyPI package socketify contains the library, compiled, with a C interface.
 * A small C program (uwebsockets.c) is linked with it, so that no Python and no JS is measured.
 */
import { existsSync } from 'node:fs';
import { arch, platform } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { cacheFolder, findCommand, runTool } from '../install.js';

const SOURCE = fileURLToPath(new URL('uwebsockets.c', import.meta.url));
const VERSION = '0.0.31';
const LIBRARY = 'libsocketify_linux_amd64.so';

/** @returns {string} */
export function uWebSocketsProgram() {
  return join(cacheFolder(), 'uwebsockets');
}

/** @param {import('../lab.js').Lab} lab @returns {Promise<string>} why it can't be built; '' on success */
export function buildUWebSockets(lab) {
  return buildWithUWebSockets(lab, SOURCE, uWebSocketsProgram());
}

/**
 * @param {import('../lab.js').Lab} lab @param {string} source a file in C @param {string} program the file to write
 * @returns {Promise<string>} why it can't be built; '' on success
 */
export async function buildWithUWebSockets(lab, source, program) {
  if (platform() !== 'linux' || arch() !== 'x64') return 'its library is compiled for Linux on x86-64 only';
  const [python, compiler] = ['python3', 'cc'].map(findCommand);
  if (!python) return 'python3 is not installed, with whose pip the library is downloaded';
  if (!compiler) return 'there is no C compiler (Debian: gcc)';
  const folder = join(cacheFolder(), `socketify-${VERSION}`);
  const library = join(folder, 'socketify', LIBRARY);
  if (!existsSync(library)) {
    const words = [
      '-m',
      'pip',
      'install',
      '--quiet',
      '--no-deps',
      '--target',
      folder,
      `socketify==${VERSION}`,
    ];
    const problem = await runTool(lab, python, words, cacheFolder());
    if (problem) return problem;
  }
  const words = ['-O2', '-o', program, source, library, `-Wl,-rpath,${join(folder, 'socketify')}`];
  return runTool(lab, compiler, words, cacheFolder());
}
