/*
 * The servers of the experiment: ours without and with TLS, and the peers with TLS. And their clients: the fleet's own dialer.
 */
import { Helper } from '../helper.js';
import { PEER_LIST, startPeer } from '../peers.js';
import { startServer } from '../server.js';
import { certificateFiles } from './certificate.js';
import { checkCipher } from './cipher.js';

/** An interval so long that no ping is due during a measurement. */
const NEVER_MS = 3_600_000;
/** For a slow server on a busy machine to open all streams. */
const TIMEOUT_MS = 240_000;
/** Streams being opened at a time. */
const CONCURRENCY = 512;

export const OURS = ['plain', 'tls'];
export const TLS_PEERS = PEER_LIST.filter(({ hasTls }) => hasTls);

/** @typedef {import('../lab.js').Lab} Lab */

/**
 * @typedef {object} Subject
 * @property {number} port
 * @property {boolean} isTls
 * @property {string} accept what its streams are
 * @property {() => number[]} pids of all its processes
 * @property {() => void} check throws when it has ended
 * @property {() => Promise<void>} stop
 * @property {import('../server.js').LabServer | null} server null for peers
 *
 * @typedef {object} How
 * @property {string} name for its CSV
 * @property {number} [pingIntervalMs] 0 for none
 * @property {number} [refreshMs] how often frames of ours come
 * @property {boolean} [collects] whether ours collects garbage every second
 */

/** @param {Lab} lab @param {string} run @param {How} how @returns {Promise<Subject>} */
export async function startSubject(
  lab,
  run,
  { name, pingIntervalMs = 0, refreshMs = 1000, collects = false },
) {
  const { cert, key } = certificateFiles(lab);
  const peer = TLS_PEERS.find((one) => one.name === run);
  if (peer) {
    const started = await startPeer(lab, peer, pingIntervalMs, [cert, key]);
    await checkCipher(run, started.port);
    return { ...started, isTls: true, accept: peer.params.accept, server: null };
  }
  const isTls = run === 'tls';
  const args = ['--transport', 'hold', '--workers', '2', '--refresh', String(refreshMs)];
  args.push('--ping-interval', String(pingIntervalMs || NEVER_MS));
  if (isTls) args.push('--tls-cert', cert, '--tls-key', key);
  if (collects) args.push('--gc-interval', '1000');
  const server = await startServer(lab, { name, args, nodeFlags: collects ? ['--expose-gc'] : [] });
  if (isTls) await checkCipher(run, server.port);
  return {
    port: server.port,
    isTls,
    accept: 'text',
    pids: () => server.pids(),
    check: () => server.check(),
    stop: () => server.stop(),
    server,
  };
}

/** @typedef {{ counts: Record<string, number>, latencies: Record<string, { count: number, p99: number }> }} Taken counts since the start, latencies since the last time */

export class Clients {
  /** @param {Lab} lab @param {Subject} subject @param {{ streams: number, pingIntervalMs?: number, resumes?: boolean }} how */
  constructor(lab, subject, how) {
    this.subject = subject;
    this.how = how;
    this.helper = new Helper(lab, 'crowd');
  }

  /** @param {boolean} [resumes] whether connections from now on use tickets */
  aim(resumes = this.how.resumes ?? true) {
    const { port, isTls, accept } = this.subject;
    const { streams, pingIntervalMs = NEVER_MS } = this.how;
    const params = {
      port,
      n: streams,
      accept,
      interval: pingIntervalMs,
      expect: 'any',
      timeout: TIMEOUT_MS,
      concurrency: CONCURRENCY,
      ...(isTls ? { tls: 1, insecure: 1, 'no-resume': resumes ? 0 : 1 } : {}),
    };
    return this.helper.ask(
      'aim',
      Object.entries(params).map(([key, value]) => [key, String(value)]),
    );
  }

  /** @param {number} streams @returns {Promise<number>} ms it took until there were so many */
  open(streams) {
    return this.helper.ask('open', streams);
  }

  /** Closes all. */
  close() {
    return this.helper.ask('close');
  }

  /** @returns {Promise<Taken>} */
  take() {
    return this.helper.ask('take');
  }

  stop() {
    return this.helper.stop();
  }
}

/** @param {Lab} lab @param {Subject} subject @param {Clients['how']} how @returns {Promise<Clients>} ready to open streams */
export async function startClients(lab, subject, how) {
  const clients = new Clients(lab, subject, how);
  await clients.aim();
  return clients;
}
