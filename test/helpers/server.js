/*
 * The real server as a child process, on ports that the system chose.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { codeOf } from '../../lib/errors.js';
import { untilListening } from '../../lib/listening.js';
import { native } from '../../native/index.js';
import { until } from './until.js';

export const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** Options of every server unless a test gives others. */
const DEFAULTS = ['--port', '0', '--admin-port', 'auto', '--dashboard', 'off', '--refresh', '100'];
/** @type {import('node:child_process').StdioOptions} */
const WITH_IPC = ['pipe', 'pipe', 'pipe', 'ipc'];

/** The transports that every test of the wire runs against. */
export const TRANSPORTS = native ? ['http', 'hold'] : ['http'];

/** What ends: a test, or a file of tests. @typedef {{ after: (clean: () => void | Promise<void>) => void }} Scope */

/** @param {Scope} t @returns {string} a new folder, removed after the test */
export function temporaryFolder(t) {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-'));
  // A server that is killed later, by the next hook, may write a file meanwhile; and if a hook fails, the next ones are left out.
  t.after(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 }));
  return folder;
}

/**
 * A child process whose output is kept.
 * @param {Scope} t it is killed after the test, with its process group
 * @param {string} command
 * @param {string[]} args
 * @param {import('node:child_process').SpawnOptions} [options]
 */
export function run(t, command, args, options = {}) {
  const child = spawn(command, args, { cwd: ROOT, detached: true, stdio: 'pipe', ...options });
  const output = { stdout: '', stderr: '' };
  child.stdout?.on('data', (data) => {
    output.stdout += data;
  });
  child.stderr?.on('data', (data) => {
    output.stderr += data;
  });
  child.on('error', (error) => {
    output.stderr += error.message;
  });
  /** @type {Promise<{ code: number | null, signal: string | null }>} */
  const exit = new Promise((resolve) => child.on('close', (code, signal) => resolve({ code, signal })));
  t.after(async () => {
    if (child.exitCode === null && child.signalCode === null && child.pid) {
      try {
        process.kill(-child.pid, 'SIGKILL');
      } catch (error) {
        if (codeOf(error) !== 'ESRCH') throw error; // it has exited by itself meanwhile
      }
      await exit;
    }
  });
  return { child, output, exit, pid: child.pid ?? 0 };
}

/**
 * @param {import('node:test').TestContext} t
 * @param {string[]} [args] options of the server
 * @param {object} [how]
 * @param {string[]} [how.nodeArgs]
 * @param {string[]} [how.prefix] a command that runs the server, such as `ip netns exec name`
 * @returns everything needed to use the server, which is listening and has made its first frame
 */
export async function startServer(t, args = [], { nodeArgs = [], prefix = [] } = {}) {
  const folder = temporaryFolder(t);
  const [command, ...rest] = [...prefix, process.execPath, ...nodeArgs, 'server.js'];
  const process_ = run(t, command, [...rest, ...DEFAULTS, '--log-dir', folder, ...args], { stdio: WITH_IPC });
  const { child, output } = process_;
  const { port, adminPort, workers } = await listening(child).catch((error) => {
    throw new Error(`${error.message}: ${output.stderr}`);
  });
  const admin = async (/** @type {string} */ path) => fetch(`http://127.0.0.1:${adminPort}${path}`);
  /** @returns {Promise<import('../../monitor/frame.js').Frame>} */
  const frame = async () => (await admin('/frame')).json();
  return {
    ...process_,
    port,
    adminPort,
    workerPids: workers,
    folder,
    admin,
    frame,
    /** @param {(totals: Record<string, any>) => boolean} condition @param {string} what */
    untilTotals: (condition, what) =>
      until(async () => {
        const { totals } = await frame();
        return condition(totals) && totals;
      }, what),
    /** Drains the server. @returns {Promise<{ code: number | null, signal: string | null }>} */
    stop: () => {
      child.kill('SIGTERM');
      return process_.exit;
    },
    csv: () => readCsv(folder),
  };
}

/** @param {import('node:child_process').ChildProcess} child @returns {Promise<import('../../lib/listening.js').ServerListening>} */
const listening = (child) => untilListening(child);

/** @param {string} folder @returns {Record<string, string>[]} the rows of the one CSV in it */
export function readCsv(folder) {
  const [file] = readdirSync(folder).filter((name) => name.endsWith('.csv'));
  const [head, ...rows] = readFileSync(join(folder, file), 'utf8').split('\r\n').slice(0, -1);
  const names = head.split(',');
  return rows.map((row) => Object.fromEntries(row.split(',').map((value, i) => [names[i], value])));
}

/** @param {number} pid of the leader of a process group, such as `run` makes */
export function groupIsAlive(pid) {
  try {
    process.kill(-pid, 0);
    return true;
  } catch {
    return false;
  }
}
