/*
 * Chromium, for tests of what pages see.
 */
import { existsSync } from 'node:fs';

const PATH = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync);
// Chromium has no sandbox as root; the other flags keep it from calling home.
const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** For tests that need it. */
export const NEEDS_CHROMIUM = { skip: !PATH && 'Chromium is not installed (Debian: chromium)' };

/**
 * @param {import('node:test').TestContext} t @param {string[]} [flags] in addition
 * @returns {Promise<import('playwright-core').Browser>} closed after the test
 */
export async function startBrowser(t, flags = []) {
  const { chromium } = await import('playwright-core');
  const browser = await chromium.launch({ executablePath: PATH, args: [...FLAGS, ...flags] });
  t.after(() => browser.close());
  return browser;
}
