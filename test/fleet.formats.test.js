/*
 * Streams of lines of JSON, polls and WebSockets, of both dialers, against a Hold and against servers that are wrong on purpose.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { noCauses } from '../fleet/drone/causes.js';
import { changedParams, defaultParams } from '../fleet/drone/params.js';
import { requestOf } from '../fleet/drone/request.js';
import { Hold } from '../index.js';
import { native } from '../native/index.js';
import { testEach } from './helpers/dialers.js';
import { until } from './helpers/until.js';

/** @typedef {import('../fleet/drone/causes.js').Cause} Cause */
/** @typedef {import('../fleet/drone/params.js').Format} Format */
/** @typedef {import('./helpers/dialers.js').Dial} Dial */

const NEEDS_CORE = native ? false : 'the native core is not built';
const PING_MS = 50;
/** @type {Format[]} */
const STREAMS = ['ndjson', 'websocket'];

/** @param {Format} format @param {Record<string, string>} [params] */
function targetOf(format, params = {}) {
  const given = Object.entries({ format, ...params });
  return { format, request: requestOf(changedParams(defaultParams(), given)) };
}

/**
 * A Hold that holds everything in this format, and a dialer of it.
 * @param {import('node:test').TestContext} t @param {Dial} dial @param {Format} format
 * @param {Partial<import('../fleet/drone/dial.js').Target>} [target] @param {Record<string, unknown>} [hold]
 */
async function start(t, dial, format, target = {}, hold = {}) {
  const welcome = format === 'ndjson' ? '{"data":"Welcome!"}\n' : 'Welcome!';
  const decision = { hold: format, channels: ['all'], ...(format === 'poll' ? {} : { welcome }), ...hold };
  const server = new Hold({ pingIntervalMs: PING_MS, policy: { decide: () => /** @type {any} */ (decision) } });
  const { port } = /** @type {any} */ (await server.listen(0, '127.0.0.1'));
  t.after(() => server.destroy());
  const dialled = await dial([port], {
    ...targetOf(format),
    pingIntervalMs: PING_MS,
    allowsMessages: true,
    ...target,
  });
  return { server, dialled, port };
}
