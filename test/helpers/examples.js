/*
 * The examples as programs, and pages that use them.
 */
import assert from 'node:assert/strict';
import { freePort } from '../../lib/port.js';
import { run } from './server.js';
import { until } from './until.js';

/** @typedef {import('node:test').TestContext} TestContext */

/**
 * @param {TestContext} t
 * @param {string} name of the folder
 * @param {{ port?: number, cwd?: string, env?: Record<string, string> }} [options] `cwd`: where it is run, if not in the clone
 */
export async function startExample(t, name, { port, cwd, env } = {}) {
  const chosen = port ?? (await freePort(0, '127.0.0.1'));
  const file = cwd ? 'server.js' : `examples/${name}/server.js`;
  const options = { env: { ...process.env, PORT: String(chosen), ...env }, ...(cwd ? { cwd } : {}) };
  const program = run(t, process.execPath, [file], options);
  const { child, output } = program;
  await until(
    () => {
      assert.equal(child.exitCode, null, output.stderr);
      return output.stdout.includes(`http://localhost:${chosen}/`);
    },
    () => `it listens: ${output.stderr}`,
  );
  return { ...program, port: chosen, url: `http://localhost:${chosen}/` };
}

/**
 * @param {import('playwright-core').Page} page
 * @returns {string[]} what goes wrong in it, as it happens: errors, and what its policy refuses; but not lost connections, and missing icons
 */
export function problemsOf(page) {
  /** @type {string[]} */
  const problems = [];
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('console', (message) => {
    const isExpected = /net::ERR_/.test(message.text()) || message.location().url.endsWith('/favicon.ico');
    if (message.type() === 'error' && !isExpected) problems.push(message.text());
  });
  return problems;
}

/** @param {import('playwright-core').Page} page @param {string} selector @returns {Promise<string[]>} the texts of all that match */
export const textsIn = (page, selector) => page.locator(selector).allTextContents();

/** @param {import('playwright-core').Page} page @param {string} selector @param {readonly string[]} expected */
export async function untilTexts(page, selector, expected) {
  /** @type {string[]} */
  let found = [];
  await until(
    async () => {
      found = await textsIn(page, selector);
      return JSON.stringify(found) === JSON.stringify(expected);
    },
    () => `${selector} with ${JSON.stringify(expected)}, not ${JSON.stringify(found)}`,
    30_000,
  );
}
