/*
 * Kernel settings for one run. A separate process restores the old values as soon as we let go of it, however we end.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { HoldfastError, messageOf } from '../../lib/errors.js';
import { pathOfSysctl } from '../../limits/kernel.js';

const RESTORER = fileURLToPath(new URL('restore-sysctls.js', import.meta.url));

/** @param {string} name 'net.core.somaxconn' @returns {string | null} one blank between values; null when there is no such setting */
export function readSysctl(name) {
  try {
    return readFileSync(`/${pathOfSysctl(name)}`, 'utf8')
      .trim()
      .replace(/\s+/g, ' ');
  } catch {
    return null;
  }
}

/**
 * @param {import('./lab.js').Lab} lab @param {Record<string, string>} wanted
 * @returns {Promise<() => Promise<void>>} restores the old values
 * @throws {HoldfastError} SYSCTL
 */
export async function setSysctls(lab, wanted) {
  if (Object.keys(wanted).length === 0) return async () => {};
  const before = Object.fromEntries(Object.keys(wanted).map((name) => [name, readSysctl(name)]));
  const restore = await startRestorer(lab, before);
  for (const [name, value] of Object.entries(wanted)) {
    try {
      writeFileSync(`/${pathOfSysctl(name)}`, value);
    } catch (error) {
      await restore();
      throw new HoldfastError('SYSCTL', `can't set ${name} to ${value}: ${messageOf(error)}`);
    }
  }
  return restore;
}

/** @param {import('./lab.js').Lab} lab @param {Record<string, string | null>} before */
async function startRestorer(lab, before) {
  const child = spawn(process.execPath, [RESTORER, JSON.stringify(before)], {
    stdio: ['pipe', 'pipe', 'inherit'],
    detached: true,
  });
  const ended = once(child, 'exit');
  const restore = lab.clean.add(async () => {
    child.stdin.end();
    const [status] = await ended;
    if (status !== 0)
      throw new HoldfastError('SYSCTL', `these settings could not be restored: ${JSON.stringify(before)}`);
  });
  await lab.unlessAborted(once(createInterface(child.stdout), 'line'));
  return restore;
}
