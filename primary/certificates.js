/*
 * The certificates of --tls-cert: reads them, checks them, and reads them again when their files change or on SIGHUP. Workers
 * get them from here, so all of them have the same, and a pair that doesn't fit together never reaches one.
 *
 *     open --read--> in use --a file changes, SIGHUP--> read --they fit--> in use, and the workers get them
 *                                                         \--they don't--> those before stay in use; looked at again each second
 *
 * Files are compared once a second, not watched: certbot replaces links, Kubernetes the folder behind a link, and a network file system
 * reports no changes. In each case, the path leads to another file afterwards.
 */
import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { invalidity, readPair, TICKET_KEYS_BYTES } from '../lib/certificates.js';
import { codeOf, HoldfastError, messageOf } from '../lib/errors.js';
import { formatNoun } from '../lib/format.js';
import { native } from '../native/index.js';

const LOOK_MS = 1000;
/** Whoever replaces certificate and key one after the other needs less than this. If they don't fit together for longer, that is a problem. */
const SETTLE_MS = 5000;
const DAY_MS = 86_400_000;
/** From then on, a certificate that expires is mentioned once a day. */
const SOON_MS = 14 * DAY_MS;
const MOST_BYTES = 1_048_576;
const VERSIONS = /** @type {const} */ ({ 1.2: 'TLSv1.2', 1.3: 'TLSv1.3' });

/**
 * What a worker listens with: the options of `setSecureContext`, as they can be sent in a message.
 * @typedef {object} Secure
 * @property {string[]} cert PEM
 * @property {string[]} key PEM, not encrypted
 * @property {'TLSv1.2' | 'TLSv1.3'} minVersion
 * @property {string} ticketKeys 48 bytes, in base64
 */

/** @typedef {{ cert: string[], key: string[], facts: import('../lib/certificates.js').Facts[] }} Pairs */
/** @typedef {{ cert: string, key: string }} Files */

export class Certificates {
  /**
   * @param {object} options
   * @param {Pick<import('../lib/config.js').Config, 'tlsCerts' | 'tlsKeys' | 'tlsMinVersion'>} options.config
   * @param {(line: string) => void} options.note
   * @param {(secure: Secure) => void} options.onChange called with each that follows the first one
   */
  constructor({ config: { tlsCerts, tlsKeys, tlsMinVersion }, note, onChange }) {
    /** @type {Files[]} */
    this.files = tlsCerts.map((cert, i) => ({ cert, key: tlsKeys[i] }));
    this.minVersion = VERSIONS[tlsMinVersion];
    this.note = note;
    this.onChange = onChange;
    /** Those in use. @type {Pairs | null} */
    this.pairs = null;
    /** With these, clients resume their sessions. The next server gets them in a takeover. */
    this.ticketKeys = randomBytes(TICKET_KEYS_BYTES).toString('base64');
    /** What the files were when they were last read. */
    this.stamp = '';
    /** Since when the files don't fit together; undefined if they do. @type {number | undefined} */
    this.wrongSinceMs = undefined;
    this.isReported = false;
    this.mentionedMs = Number.NEGATIVE_INFINITY;
    /** One at a time. @type {Promise<void>} */
    this.last = Promise.resolve();
    /** @type {NodeJS.Timeout | undefined} */
    this.timer = undefined;
  }

  /** Whether the port of the streams speaks TLS. */
  get areUsed() {
    return this.files.length > 0;
  }

  /** @returns {Secure | null} null without TLS */
  get secure() {
    if (!this.pairs) return null;
    const { minVersion, ticketKeys } = this;
    const { cert, key } = this.pairs;
    return { cert, key, minVersion, ticketKeys };
  }

  /** @returns {Promise<void>} @throws {HoldfastError} BAD_CERTIFICATE: why they can't be used */
  async open() {
    if (!this.areUsed) return;
    this.stamp = await stampOf(this.files);
    this.pairs = await this.read();
  }

  /** From now on they are read again when they change. */
  watch() {
    if (!this.areUsed) return;
    this.mention();
    this.timer = setInterval(() => this.look(), LOOK_MS).unref();
  }

  close() {
    clearInterval(this.timer);
  }

  look() {
    this.mention();
    this.last = this.last.then(() => this.compare());
  }

  /** Reads the files again, whether they have changed or not, and says what came of it. @returns {Promise<void>} never rejects */
  reload() {
    this.last = this.last.then(() => (this.pairs ? this.take(true) : undefined));
    return this.last;
  }

  async compare() {
    const stamp = await stampOf(this.files);
    const hasChanged = stamp !== this.stamp;
    if (!hasChanged && this.wrongSinceMs === undefined) return;
    if (hasChanged) {
      this.wrongSinceMs = undefined;
      this.isReported = false;
    }
    this.stamp = stamp; // from before they are read: what changes meanwhile is noticed
    await this.take(false);
  }

  /** @param {boolean} isAsked whether somebody wants to know the outcome now */
  async take(isAsked) {
    try {
      const pairs = await this.read();
      this.wrongSinceMs = undefined;
      if (isSame(pairs, this.pairs)) {
        if (isAsked) this.note('the certificates have not changed');
        return;
      }
      this.pairs = pairs;
      this.mentionedMs = Number.NEGATIVE_INFINITY;
      this.note(`new ${this.describe()}`);
      this.onChange(/** @type {Secure} */ (this.secure));
    } catch (error) {
      this.keep(messageOf(error), isAsked);
    }
  }

  /** @param {string} problem @param {boolean} isAsked */
  keep(problem, isAsked) {
    const nowMs = performance.now();
    this.wrongSinceMs ??= nowMs;
    const isLate = nowMs - this.wrongSinceMs >= SETTLE_MS && !this.isReported;
    if (!isAsked && !isLate) return;
    this.isReported = true;
    this.note(`${problem}; the certificates from before stay in use`);
  }

  /** @returns {string} what is in use, for people */
  describe() {
    const facts = this.pairs?.facts ?? [];
    const list = facts.map(({ names, expiresMs }) => `${names} (until ${dayOf(expiresMs)})`);
    return `${facts.length === 1 ? 'certificate' : 'certificates'} of ${list.join('; ')}`;
  }

  /** Once a day: certificates that expire soon. */
  mention() {
    const nowMs = Date.now();
    if (nowMs - this.mentionedMs < DAY_MS) return;
    this.mentionedMs = nowMs;
    for (const line of this.cautions(nowMs)) this.note(line);
  }

  /** @param {number} nowMs @returns {string[]} */
  cautions(nowMs) {
    return (this.pairs?.facts ?? []).flatMap(({ expiresMs }, i) => {
      const leftMs = expiresMs - nowMs;
      if (leftMs > SOON_MS) return [];
      const name = `--tls-cert ${this.files[i].cert}`;
      if (leftMs <= 0) return [`${name} expired on ${dayOf(expiresMs)}: clients refuse it`];
      const days = formatNoun(Math.floor(leftMs / DAY_MS), 'day');
      return [`${name} expires in ${days}, on ${dayOf(expiresMs)}: renew it`];
    });
  }

  /** @returns {Promise<Pairs>} @throws {HoldfastError} BAD_CERTIFICATE */
  async read() {
    /** @type {Pairs} */
    const pairs = { cert: [], key: [], facts: [] };
    const nowMs = Date.now();
    for (const { cert, key } of this.files) {
      const [chainName, keyName] = [`--tls-cert ${cert}`, `--tls-key ${key}`];
      const given = { chain: await contentsOf(chainName, cert), key: await contentsOf(keyName, key) };
      const { problem, facts } = readPair({ ...given, chainName, keyName });
      if (!facts) throw badCertificate(problem);
      const invalid = invalidity(facts, nowMs);
      if (invalid) throw badCertificate(`${chainName} ${invalid}`);
      pairs.cert.push(given.chain);
      pairs.key.push(given.key);
      pairs.facts.push(facts);
    }
    this.tryNatively(pairs);
    return pairs;
  }

  /** Native knows fewer kinds of keys than Node. @param {Pairs} pairs @throws {HoldfastError} BAD_CERTIFICATE */
  tryNatively({ cert, key }) {
    const certificates = cert.map((chain, i) => ({ chain: Buffer.from(chain), key: Buffer.from(key[i]) }));
    try {
      if (native) new native.Tls({ certificates, minVersion: 13, ticketSecret: Buffer.alloc(32) });
    } catch (error) {
      // 'certificate 2: …'
      const line = messageOf(error).replace(/^certificate (\d+)/, (whole, number) =>
        this.files[number - 1] ? `--tls-cert ${this.files[number - 1].cert}` : whole,
      );
      throw badCertificate(line);
    }
  }
}

/** @param {Pairs} pairs @param {Pairs | null} others */
function isSame({ cert, key }, others) {
  return cert.every((text, i) => text === others?.cert[i] && key[i] === others.key[i]);
}

/** @param {readonly Files[]} files @returns {Promise<string>} changes when one of them does */
async function stampOf(files) {
  const paths = files.flatMap(({ cert, key }) => [cert, key]);
  const stamps = await Promise.all(
    paths.map((path) =>
      stat(path, { bigint: true }).then(
        ({ dev, ino, size, mtimeNs, ctimeNs }) => [dev, ino, size, mtimeNs, ctimeNs].join(':'),
        (error) => codeOf(error),
      ),
    ),
  );
  return stamps.join(' ');
}

/** @param {string} name for errors @param {string} path @returns {Promise<string>} @throws {HoldfastError} BAD_CERTIFICATE */
async function contentsOf(name, path) {
  try {
    return await textOf(name, path);
  } catch (error) {
    if (error instanceof HoldfastError) throw error;
    const code = codeOf(error);
    const why = code === 'ENOENT' ? 'there is no such file' : `it can't be read (${code})`;
    throw badCertificate(`${name}: ${why}`);
  }
}

/** A pipe or a device may never end, and opening a pipe may wait for its other side. @param {string} name @param {string} path */
async function textOf(name, path) {
  const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const stats = await handle.stat();
    if (!stats.isFile() && !stats.isDirectory()) throw badCertificate(`${name} is no regular file`);
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(MOST_BYTES + 1), 0, MOST_BYTES + 1, 0);
    if (bytesRead > MOST_BYTES) throw badCertificate(`${name} has more than ${MOST_BYTES} bytes`);
    return buffer.toString('latin1', 0, bytesRead);
  } finally {
    await handle.close();
  }
}

/** @param {string} line */
function badCertificate(line) {
  return new HoldfastError('BAD_CERTIFICATE', line);
}

/** @param {number} timeMs @returns {string} '2026-12-31' */
function dayOf(timeMs) {
  return new Date(timeMs).toISOString().slice(0, 10);
}
