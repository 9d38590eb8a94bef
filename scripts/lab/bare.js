/*
 * Rust programs for measuring: a bare epoll loop (the floor), a cheap client, and a watch for pauses of the machine.
 */
import { fileURLToPath } from 'node:url';
import { findCommand, runTool } from './install.js';

const FOLDER = fileURLToPath(new URL('bare/', import.meta.url));

/** @param {'floor' | 'client' | 'pauses'} name @returns {string} its path; it exists after buildBare */
export function bareProgram(name) {
  return `${FOLDER}target/release/${name}`;
}

/** For runs that only watch for pauses with them, and do without. @param {import('./lab.js').Lab} lab @returns {Promise<string>} '' */
export async function tryBuildBare(lab) {
  await buildBare(lab);
  return '';
}

/** @param {import('./lab.js').Lab} lab @returns {Promise<string>} why they can't be built; '' on success */
export async function buildBare(lab) {
  const cargo = findCommand('cargo');
  if (!cargo) return 'cargo is not installed (see https://rustup.rs)';
  return runTool(lab, cargo, ['build', '--release', '--locked', '--quiet'], FOLDER);
}
