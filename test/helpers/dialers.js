/*
 * The dialers of the fleet. The same is expected of all of them.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create as createPlain } from '../../fleet/drone/dial.plain.js';
import { emptyHistograms, MEASURES } from '../../fleet/drone/histograms.js';
import { native } from '../../native/index.js';
import { until } from './until.js';

/** @typedef {import('../../fleet/drone/dial.js').Dialer} Dialer */
/** @typedef {import('../../fleet/drone/dial.js').Target} Target */
/** @typedef {import('../../fleet/drone/dial.js').Counters} Counters */

/** @type {Record<string, () => Dialer | Promise<Dialer>>} */
export const DIALERS = { plain: createPlain };
if (native) DIALERS.native = async () => (await import('../../fleet/drone/dial.native.js')).create();

const DAY_MS = 86_400_000;

const HOST = '127.0.0.1';

/** @param {number[]} ports @returns {import('../../fleet/drone/dial.js').Server} on this machine */
export const serverAt = (ports) => ({ name: `${HOST}:${ports}`, host: HOST, addresses: [HOST], ports });

/** A dialer, and everything taken from it so far. */
export class Dialled {
  /** @param {Dialer} dialer @param {number[]} ports @param {Partial<Target>} target */
  constructor(dialer, ports, target) {
    this.dialer = dialer;
    /** @type {Counters['samples']} */
    this.samples = [];
    this.histograms = emptyHistograms();
    /** @type {Counters} */
    this.counters = dialer.take();
    this.aim(ports, target);
  }

  /** @param {number[]} ports @param {Partial<Target>} target */
  aim(ports, target) {
    this.dialer.aim({
      servers: [serverAt(ports)],
      sources: [],
      format: 'text',
      request: 'GET / HTTP/1.1\r\nHost: a\r\n\r\n',
      subscription: null,
      pingIntervalMs: 0,
      idlePings: false,
      timeoutMs: DAY_MS,
      isStrict: true,
      allowsMessages: false,
      security: null,
      ...target,
    });
  }

  /** @returns {Counters} */
  take() {
    this.counters = this.dialer.take();
    this.samples.push(...this.counters.samples);
    for (const name of MEASURES) this.histograms[name].merge(this.counters[name]);
    return this.counters;
  }

  /** @param {(counters: Counters) => boolean} condition @param {string} what */
  until(condition, what) {
    const tell = () => `${what}: ${JSON.stringify(this.counters)}`;
    return until(() => condition(this.take()) && this.counters, tell);
  }

  /** @param {number} count */
  async open(count) {
    this.dialer.open(count);
    await this.until(({ open }) => open === count, `${count} open streams`);
  }
}

/** @typedef {(ports: number[], target?: Partial<Target>) => Promise<Dialled>} Dial makes a dialer for a test */

/**
 * One test for each dialer.
 * @param {string} name
 * @param {(t: import('node:test').TestContext, dial: Dial) => Promise<void>} body
 */
export function testEach(name, body) {
  for (const [kind, create] of Object.entries(DIALERS)) {
    test(`${kind}: ${name}`, async (t) => {
      await body(t, async (ports, target = {}) => {
        const dialled = new Dialled(await create(), ports, target);
        t.after(() => dialled.dialer.stop());
        assert.equal(dialled.dialer.name, kind);
        return dialled;
      });
    });
  }
}
