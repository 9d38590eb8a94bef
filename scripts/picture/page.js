/*
 * A picture of the dashboard in Chromium.
 */
import { existsSync } from 'node:fs';
import { setTimeout as after } from 'node:timers/promises';
import { HoldfastError } from '../../lib/errors.js';

const CHROMIUM = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(
  existsSync,
);
// Chromium has no sandbox as root.
const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-sync',
];
const WIDTH = 1280;
/** Topics come every 5 seconds. */
const SETTLE_MS = 11_000;

/**
 * @param {string} url @param {string} path of the PNG
 * @throws {HoldfastError} NO_CHROMIUM
 */
export async function drawPage(url, path) {
  if (!CHROMIUM) throw new HoldfastError('NO_CHROMIUM', 'the picture needs Chromium (Debian: chromium)');
  const { chromium } = await import('playwright-core');
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: FLAGS });
  try {
    const page = await browser.newPage({ viewport: { width: WIDTH, height: 900 }, colorScheme: 'dark' });
    await page.goto(url);
    await after(SETTLE_MS);
    await page.screenshot({ path, fullPage: true });
  } finally {
    await browser.close();
  }
}
