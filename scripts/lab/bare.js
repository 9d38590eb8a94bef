/*
 * Programs in Rust that do nothing but what they measure: the bare epoll loop, a client, a clock of the host's pauses.
 */
import { createInterface } from 'node:readline';
import { setTimeout as after } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { HoldfastError } from '../../lib/errors.js';
import { hasEnded } from './clean.js';
import { findCommand, runTool } from './install.js';

export const BARE = fileURLToPath(new URL('bare/', import.meta.url));

/** @param {'floor' | 'client' | 'hiccup'} name @returns {string} its path, once it was built */
export function bareProgram(name) {
  return `${BARE}target/release/${name}`;
}

/** @param {import('./lab.js').Lab} lab @returns {Promise<string>} why there is none; '' where there is */
export async function buildBare(lab) {
  const cargo = findCommand('cargo');
  if (!cargo) return 'there is no cargo here: https://rustup.rs brings it';
  return runTool(lab, cargo, ['build', '--release', '--locked', '--quiet'], BARE);
}

/** A bare loop pings in steps of this, as a shard of the server does. */
const STEP_MS = 200;

/**
 * So many bare loops on one port, each a process with a descriptor table of its own. They start apart in time, as the
 * shards of the server wake.
 * @param {import('./lab.js').Lab} lab @param {number} port @param {number} intervalMs @param {number} count
 * @returns {Promise<{ pids: () => number[], check: () => void, stop: () => Promise<void> }>}
 */
export async function startBare(lab, port, intervalMs, count) {
  // Its input is its life: at the end of it it ends.
  const start = () =>
    lab.clean.spawn(bareProgram('floor'), [String(intervalMs), String(port)], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
  /** @type {import('node:child_process').ChildProcess[]} */
  const children = [];
  for (let i = 0; i < count; i++) {
    children.push(start());
    await after(STEP_MS / count);
  }
  const check = () => {
    const ended = children.find(hasEnded);
    if (ended) throw new HoldfastError('BARE', `a bare loop ended (${ended.signalCode ?? ended.exitCode})`);
  };
  await lab.unlessAborted(Promise.all(children.map(untilListening)));
  check();
  return {
    pids: () => children.flatMap(({ pid }) => (pid ? [pid] : [])),
    check,
    stop: async () => void (await Promise.all(children.map((child) => lab.clean.end(child)))),
  };
}

/** @param {import('node:child_process').ChildProcess} child @returns {Promise<void>} when it says so, or has ended */
function untilListening(child) {
  return new Promise((resolve) => {
    if (child.stdout) createInterface(child.stdout).once('line', () => resolve());
    child.once('exit', () => resolve());
    child.once('error', () => resolve());
  });
}
