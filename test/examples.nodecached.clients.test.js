/*
 * Clients of memcached that people use work with examples/nodecached/server.js: pymemcache and python-memcached from PyPI, memcached
 * from npm.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import Memcached from 'memcached';
import { startCached } from './helpers/nodecached.js';
import { pythonPackage } from './helpers/python.js';
import { run } from './helpers/server.js';

/** @param {import('node:test').TestContext} t @param {string} name @param {string} requirement @param {string} program */
async function runPython(t, name, requirement, program) {
  const { folder, problem } = await pythonPackage(name, requirement);
  if (problem) return t.skip(problem);
  const { port } = await startCached(t);
  const { output, exit } = run(t, join(folder, 'python'), ['-c', program, String(port)]);
  assert.deepEqual(await exit, { code: 0, signal: null }, output.stderr);
  assert.equal(output.stdout, 'fine\n');
}

test('pymemcache', (t) =>
  runPython(
    t,
    'pymemcache-4.0.0',
    'pymemcache==4.0.0',
    `
import sys
from pymemcache.client.base import Client
c = Client(('127.0.0.1', int(sys.argv[1])), default_noreply=False)
assert c.set('a', b'x\\r\\ny\\x00', expire=100, flags=7)
assert c.get('a') == b'x\\r\\ny\\x00'
assert c.add('a', b'1') is False and c.add('n', b'1') is True
assert c.replace('missing', b'1') is False
assert c.append('a', b'!') and c.prepend('a', b'?') and c.get('a') == b'?x\\r\\ny\\x00!'
value, cas = c.gets('n')
assert value == b'1' and c.cas('n', b'5', cas) is True and c.cas('n', b'6', cas) is False
assert c.cas('missing', b'6', cas) is None
assert c.incr('n', 10) == 15 and c.decr('n', 20) == 0 and c.incr('missing', 1) is None
assert c.touch('n', 100) is True and c.touch('missing', 1) is False
assert c.get('n') == b'0 '
assert c.set_many({'k%d' % i: b'v%d' % i for i in range(500)}) == []
assert len(c.get_many(['k%d' % i for i in range(500)])) == 500
assert c.delete('n') is True and c.delete('n') is False
large = bytes(range(256)) * 3900
assert c.set('large', large) and c.get('large') == large
c.set('quiet', b'1', noreply=True)
assert c.get('quiet') == b'1'
assert c.stats()[b'curr_items'] >= 500
assert c.version().startswith(b'1.6')
assert c.flush_all() and c.get('a') is None
c.quit()
print('fine')
`,
  ));

test('python-memcached', (t) =>
  runPython(
    t,
    'python-memcached-1.62',
    'python-memcached==1.62',
    `
import sys, memcache
c = memcache.Client(['127.0.0.1:' + sys.argv[1]], cache_cas=True)
assert c.set('a', {'some': ['object']}, time=100) and c.get('a') == {'some': ['object']}
assert c.set('n', 41) and c.incr('n') == 42 and c.decr('n', 2) == 40
assert c.gets('n') == 40 and c.cas('n', 7) and c.get('n') == 7
assert c.set_multi({'k%d' % i: 'v' * i for i in range(300)}) == []
assert len(c.get_multi(['k%d' % i for i in range(300)])) == 300
assert c.append('k3', '!') and c.get('k3') == 'vvv!'
assert c.touch('a', 100) and c.delete('a') and c.get('a') is None
assert c.get_stats()[0][1]['curr_items'] == '301'
c.flush_all()
assert c.get('n') is None
print('fine')
`,
  ));

test('memcached of npm', async (t) => {
  const { port } = await startCached(t);
  const client = new Memcached(`127.0.0.1:${port}`);
  t.after(() => client.end());
  const call = (/** @type {string} */ name) => {
    const method = /** @type {Record<string, Function>} */ (/** @type {unknown} */ (client))[name];
    return /** @type {(...args: unknown[]) => Promise<any>} */ (promisify(method.bind(client)));
  };
  assert.equal(await call('set')('a', 'ü\r\nx', 100), true);
  assert.equal(await call('get')('a'), 'ü\r\nx');
  assert.equal(await call('set')('object', { some: ['object'] }, 0), true);
  assert.deepEqual(await call('getMulti')(['a', 'object', 'none']), {
    a: 'ü\r\nx',
    object: { some: ['object'] },
  });
  const { cas } = await call('gets')('a');
  assert.equal(await call('cas')('a', '5', cas, 0), true);
  assert.equal(await call('incr')('a', 10), 15);
  assert.equal(await call('append')('a', '0'), true);
  assert.equal(await call('get')('a'), '150');
  assert.equal(await call('touch')('a', 100), true);
  await assert.rejects(call('add')('a', 'b', 0), /not stored/);
  assert.equal(await call('del')('a'), true);
  const [general] = await call('stats')();
  assert.equal(general.curr_items, 1);
  assert.equal((await call('version')())[0].version, '1.6.18');
  assert.deepEqual(await call('flush')(), [true]);
});
