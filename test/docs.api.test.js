/*
 * docs/api.md against the code: everything that both can name must be in both.
 */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { MemoryBroker } from 'holdfast';
import { LIMITS } from '../hub/matching/topics.js';
import { ALLOW, Cors } from '../hub/protocol/cors.js';
import { OPTIONS as SERVER_OPTIONS } from '../lib/config.js';
import { COUNTS, HISTOGRAMS } from '../lib/counters.js';
import { CLOSE_REASONS, REFUSAL_STATUSES } from '../lib/reasons.js';
import { OPTIONS, settingsOf } from '../transport/options.js';
import { KINDS } from './helpers/hold.js';
import { PATH, startHub } from './helpers/hub.js';
import {
  API,
  assertDefaults,
  assertSame,
  membersOf,
  namesIn,
  read,
  sectionOf,
  sourcesIn,
  TYPES,
  tableIn,
} from './helpers/reference.js';
import { ROOT } from './helpers/server.js';

/** Without it, the page is ahead of the code. */
const HAS_DASHBOARD = existsSync(join(ROOT, 'monitor/web'));
/** Codes that never reach an application: they are caught, or end a process of the server. */
const INTERNAL = ['CLIENT_GONE', 'NO_ANSWER', 'NO_TRANSPORT'];

/** @param {string} source with routes, but for those of files of a page @returns {string[]} such as 'GET /healthz' */
const routesIn = (source) =>
  [...source.matchAll(/methods: \['(\w+)'\],\s+path: ('[^']+'|hubPath)/g)].map(
    ([, method, path]) => `${method} ${path === 'hubPath' ? PATH : path.slice(1, -1)}`,
  );

describe('docs/api.md: HTTP', () => {
  test('names the paths of the hub with their methods', () => {
    const rows = tableIn(sectionOf('Paths'), 'path');
    const methods = rows.filter(([path]) => path === `\`${PATH}\``).flatMap(([, list]) => list.split(', '));
    assertSame(methods, ALLOW.split(', '));
    assert.ok(namesIn(rows).includes(`${PATH}/subscriptions`));
  });

  for (const kind of KINDS)
    test(`names paths that exist, and methods that they take (${kind})`, async (t) => {
      const { port } = await startHub(t, kind, { subscriptions: true });
      for (const [path, methods] of tableIn(sectionOf('Paths'), 'path').filter(
        ([, , what]) => !/Server only/.test(what),
      ))
        for (const method of methods.split(', ')) {
          const url = `http://localhost:${port}${path.replaceAll('`', '')}`;
          const { status, body } = await fetch(url, { method });
          await body?.cancel();
          assert.ok(![404, 405].includes(status), `${method} ${path}: ${status}`);
        }
    });

  test('names the parameters of a subscription', () => {
    const source = read('hub/protocol/subscription.js');
    const [, matchers] = /MATCHERS = \{(.*?)\}/s.exec(source) ?? [];
    const names = [...(matchers ?? '').matchAll(/(\w+): '/g)].map(([, name]) => name);
    const section = sectionOf('Subscribe');
    assertSame(namesIn(tableIn(section, 'parameter')), [
      ...names,
      'topic',
      'last_event_id',
      'authorization',
      'wait',
    ]);
    const [, cursors] = /CURSORS = \[(.*?)\]/.exec(source) ?? [];
    for (const [, name] of (cursors ?? '').matchAll(/'([^']+)'/g))
      assert.ok(section.includes(`\`${name}\``), name);
  });

  test('names the fields of a publication', () => {
    const [, fields] = /FIELDS = \[(.*?)\]/.exec(read('hub/protocol/drafts.js')) ?? [];
    const expected = [...(fields ?? '').matchAll(/'(\w+)'/g)].map(([, name]) => name);
    assertSame(namesIn(tableIn(sectionOf('Publish'), 'field')), expected);
    assertSame(membersOf('Publication'), expected);
  });

  test('has the headers of CORS as they are sent', () => {
    const cors = new Cors(['https://example.com']);
    const request = { headers: { origin: 'https://example.com' } };
    const sent = new Map(Object.entries({ ...cors.preflight(request).headers, ...cors.headersFor(request) }));
    const rows = tableIn(sectionOf('CORS'), 'response header');
    assertSame(
      namesIn(rows),
      [...sent.keys()].filter((name) => name.startsWith('Access-Control-')),
    );
    for (const [name, value] of rows.slice(2))
      assert.equal(value, `\`${sent.get(name.replaceAll('`', ''))}\``);
  });

  test('names every status that is answered, and no other', () => {
    const source = sourcesIn(['hub', 'lib', 'monitor', 'transport']);
    const refused = [
      ...source.matchAll(/(?:Request|Limit|Access)Error\(\s*(\d{3})\b|refused\((\d{3})|status: (\d{3})\b/g),
    ];
    const statuses = refused.flatMap(([, ...found]) => found.filter(Boolean));
    const known = [
      ...new Set([...statuses, ...REFUSAL_STATUSES.map(String), ...(HAS_DASHBOARD ? [] : ['409'])]),
    ];
    assertSame(namesIn(tableIn(sectionOf('Statuses'), 'status')), known);
  });

  test('names the paths of the admin port with their methods', () => {
    const [port, dashboard] = sectionOf('Admin port').split('#### The dashboard');
    const asRoutes = (/** @type {string[][]} */ rows) =>
      rows.map(([path, method]) => `${method} ${path.replaceAll('`', '')}`);
    const [named, ofDashboard] = [port, dashboard].map((text) => asRoutes(tableIn(text, 'path')));
    const routes = routesIn(sourcesIn(['monitor'], HAS_DASHBOARD));
    assert.ok(routes.length >= 8);
    assertSame([...named, ...(HAS_DASHBOARD ? ofDashboard : [])], routes);
  });

  test('names only options of the server that exist', () => {
    const flags = new Set([...SERVER_OPTIONS.map(({ flag }) => flag), 'help']);
    const coming = HAS_DASHBOARD ? [] : ['admin-host', 'admin-token'];
    const named = [...API.matchAll(/`--([a-z-]+)/g)].map(([, flag]) => flag);
    assert.deepEqual(
      named.filter((flag) => !flags.has(flag) && !coming.includes(flag)),
      [],
    );
  });
});

describe('docs/api.md: the library', () => {
  test('names every export, and every type', async () => {
    const section = sectionOf('Exports');
    assertSame(namesIn(tableIn(section, 'name')), Object.keys(await import('holdfast')));
    const types = [...TYPES.matchAll(/^export (?:interface|type) (\w+)/gm)].map(([, name]) => name);
    const [, listed] = /^Types: (.*?)\.$/ms.exec(section) ?? [];
    assertSame(
      [...(listed ?? '').matchAll(/`(\w+)`/g)].map(([, name]) => name),
      types,
    );
  });

  test('names every option of a Hold, with its default', () => {
    const rows = tableIn(sectionOf('Hold'), 'option');
    const given = OPTIONS.filter(({ check }) => check !== null).map(({ name }) => name);
    assertSame(namesIn(rows), given);
    assertSame(membersOf('HoldOptions'), given);
    const settings = /** @type {Record<string, unknown>} */ (/** @type {unknown} */ (settingsOf({})));
    assertDefaults(rows, (name) => settings[name]);
  });

  test('names every option of a Hub, with its default', () => {
    const rows = tableIn(sectionOf('Hub'), 'option');
    assertSame(namesIn(rows), membersOf('HubOptions'));
    assertSame(namesIn(tableIn(sectionOf('Hub'), 'option of `jwt`')), membersOf('JwtOptions'));
    assertSame(namesIn(tableIn(sectionOf('Hub'), 'option of `subscribe`')), membersOf('SubscribeOptions'));
    const source = read('hub/settings.js')
      .replace('Number(LIMITS.topicsPerPublication)', String(LIMITS.topicsPerPublication))
      .replace('Number(LIMITS.selectorsPerStream)', String(LIMITS.selectorsPerStream));
    assertDefaults(rows, (name) => {
      const [, value] = new RegExp(`^ {2}${name}: ([\\d_]+|true|false),$`, 'm').exec(source) ?? [];
      return value === undefined ? undefined : JSON.parse(value.replaceAll('_', ''));
    });
  });

  test('names every option of a broker, with its default', () => {
    const section = sectionOf('Brokers');
    const rows = tableIn(section, 'option');
    assertSame(namesIn(rows), membersOf('BrokerOptions'));
    const source = read('hub/settings.js');
    assertDefaults(rows, (name) => {
      const [, value] = new RegExp(`^ {2}${name}: ([\\d_]+),$`, 'm').exec(source) ?? [];
      return value && Number(value.replaceAll('_', ''));
    });
    assertSame(namesIn(tableIn(section, 'option of `nats`')), membersOf('NatsOptions'));
    const [, own] = /openBroker\(\s*options\?: BrokerOptions & \{(.*?)\n {2}\},/s.exec(TYPES) ?? [];
    const expected = [...(own ?? '').matchAll(/^ {4}(\w+)\?/gm)].map(([, name]) => name);
    assertSame(namesIn(tableIn(section, 'option of `openBroker`')), expected);
    assertSame(namesIn(tableIn(section, 'member')), membersOf('Broker'));
    for (const name of membersOf('MemoryBroker'))
      assert.ok(name in MemoryBroker.prototype || name in new MemoryBroker());
  });

  test('names every method and property of Hold and Hub', () => {
    assertSame(namesIn(tableIn(sectionOf('Hold'), 'method or property')), membersOf('Hold'));
    assertSame(namesIn(tableIn(sectionOf('Hub'), 'method or property')), membersOf('Hub'));
    assertSame(namesIn(tableIn(sectionOf('Hold'), 'field')), membersOf('Message'));
  });

  test('names every encoding, close reason and counter', () => {
    const [, encodings = ''] = /type Encoding =([^;]*);/.exec(TYPES) ?? [];
    const names = [...encodings.matchAll(/'(\w+)'/g)].map(([, name]) => name);
    assertSame(namesIn(tableIn(sectionOf('Hold'), 'encoding')), names);
    assertSame(namesIn(tableIn(sectionOf('Close reasons'), 'reason')), CLOSE_REASONS);
    const counted = [...COUNTS, ...HISTOGRAMS].map(({ name }) => name);
    assertSame(namesIn(tableIn(sectionOf('Counters'), 'counter')), [...counted, 'closed', 'refused']);
    assertSame(membersOf('Counters'), [...counted, 'closed', 'refused']);
  });

  test('names every error code and process warning', () => {
    const source = sourcesIn(['hub', 'broker', 'transport']);
    const thrown = [...source.matchAll(/HoldfastError\(\s*(?:\w+ \? )?'([A-Z_]+)'(?: : '([A-Z_]+)')?/g)];
    const codes = new Set(thrown.flatMap(([, ...found]) => found.filter(Boolean)));
    const expected = [...codes].filter((code) => !INTERNAL.includes(code));
    const section = sectionOf('Errors');
    assertSame(namesIn(tableIn(section, 'code')), expected);
    const [, comment] = /The errors of Holdfast(.*?)\*\//s.exec(TYPES) ?? [];
    assertSame((comment ?? '').match(/\b[A-Z]+(?:_[A-Z]+)*\b/g) ?? [], expected);
    const warnings = [...source.matchAll(/\bcode: '([A-Z_]+)'/g)].map(([, code]) => code);
    assertSame(namesIn(tableIn(section, 'process warning')), [...new Set(warnings)]);
  });

  test('names links that lead somewhere', () => {
    const slugs = [...API.matchAll(/^#+ (.+)$/gm)].map(([, heading]) =>
      heading
        .toLowerCase()
        .replace(/[^\w\- ]/g, '')
        .replaceAll(' ', '-'),
    );
    for (const [, slug] of API.matchAll(/\]\(#([\w-]+)\)/g)) assert.ok(slugs.includes(slug), slug);
  });
});
