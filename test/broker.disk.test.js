/*
 * What only the disk broker promises: what is answered survives, and whatever is wrong with the folder is said clearly.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { openBroker } from '../broker/index.js';
import { OPTIONS } from './helpers/brokers.js';
import { ROOT, temporaryFolder } from './helpers/server.js';
import { until } from './helpers/until.js';

const WRITER = fileURLToPath(new URL('./fixtures/broker.writer.js', import.meta.url));
const READER = fileURLToPath(new URL('./fixtures/broker.reader.js', import.meta.url));

/** @typedef {import('../broker/index.js').Broker} Broker */
/** @typedef {import('../broker/index.js').Publication} Publication */
/** @typedef {import('./helpers/brokers.js').Options} Options */

/** @type {Set<Broker>} so that a test that fails does not keep the process running */
const opened = new Set();
afterEach(async () => {
  for (const broker of opened) await broker.close();
  opened.clear();
});

/** @param {string} store @param {Partial<Options>} [options] */
async function open(store, options) {
  const broker = await openBroker({ ...OPTIONS, ...options, store });
  opened.add(broker);
  return broker;
}

/** @param {number} count @param {string} [data] */
const drafts = (count, data = 'hello') =>
  Array.from({ length: count }, () => ({ topics: ['news'], data, private: false }));

/** @param {Broker} broker @returns {Promise<Publication[]>} */
async function readAll(broker) {
  const found = [];
  for (let after = 0; ; after = found.at(-1)?.sequence ?? 0) {
    const some = await broker.read(after, 1000);
    if (some.length === 0) return found;
    found.push(...some);
  }
}

/** Changes what a store says about itself, from another process. @param {string} store @param {Record<string, unknown>} changes */
function tamper(store, changes) {
  const code = `
    const { openEnvironment } = await import('./broker/disk/environment.js');
    const { root, meta } = await openEnvironment(process.argv[1]);
    for (const [key, value] of Object.entries(JSON.parse(process.argv[2]))) await meta.put(key, value);
    await root.close();`;
  const args = ['--input-type=module', '-e', code, store, JSON.stringify(changes)];
  execFileSync(process.execPath, args, { cwd: ROOT });
}

/** @param {import('node:test').TestContext} t @param {string} store @param {string} [sync] */
function startWriter(t, store, sync = 'on') {
  const child = spawn(process.execPath, [WRITER, store, sync], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  /** @type {string[]} */
  const lines = [];
  createInterface(child.stdout).on('line', (line) => lines.push(line));
  const kill = async () => {
    child.kill('SIGKILL');
    await once(child, 'close');
  };
  return { child, lines, kill };
}

for (const sync of ['on', 'off'])
  test(`with --store-sync ${sync}, what was answered survives a kill at any point, and the order has no gap`, async (t) => {
    const store = temporaryFolder(t);
    let place = '';
    let last = 0;
    for (let round = 0; round < (sync === 'on' ? 10 : 4); round++) {
      const { lines, kill } = startWriter(t, store, sync);
      await until(() => lines.length > 1 || round % 4 === 3, 'it has begun'); // some are killed while they open the store
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 150));
      await kill();
      const [head, ...receipts] = lines;
      if (head) place ||= head;
      const broker = await open(store, { historyCount: 500 });
      if (place) assert.equal(`${broker.epoch} ${Buffer.from(broker.key).toString('hex')}`, place);
      const found = await readAll(broker);
      const bySequence = new Map(found.map((publication) => [publication.sequence, publication.data]));
      assert.deepEqual(
        [...bySequence.keys()],
        found.map((_, index) => broker.first + index),
      );
      assert.equal(broker.first + found.length - 1, broker.last);
      for (const receipt of receipts.filter((line) => line.includes(' '))) {
        const [sequence] = receipt.split(' ', 1);
        assert.ok(Number(sequence) > last && Number(sequence) <= broker.last, receipt.slice(0, 50));
        if (Number(sequence) >= broker.first)
          assert.ok(bySequence.get(Number(sequence))?.startsWith(receipt.slice(sequence.length + 1)));
      }
      const known = await Promise.all(found.map(({ id = '' }) => broker.find(id)));
      assert.deepEqual(known, [...bySequence.keys()]);
      assert.ok(found.length <= 1600, `${found.length} are kept`);
      last = broker.last;
      await broker.close();
    }
    assert.ok(last > 50, `${last}`);
  });

test('another process can read while publications are appended', async (t) => {
  const store = temporaryFolder(t);
  const { child, lines } = startWriter(t, store);
  await until(() => lines.length > 1, 'it has begun');
  const reads = Number(execFileSync(process.execPath, [READER, store, '1000'], { encoding: 'utf8' }));
  assert.ok(reads > 50, `${reads} reads`);
  assert.equal(child.exitCode, null);
});

test('everything is there after a restart', async (t) => {
  const store = temporaryFolder(t);
  const first = await open(store, { historyCount: 3 });
  const named = {
    topics: ['cached/a', 'news'],
    data: 'kept',
    private: true,
    id: 'kept',
    type: 't',
    retry: 5,
  };
  await first.append([named, ...drafts(4), { ...named, id: 'other', topics: ['cached/b'] }]);
  const before = [
    await first.latest(),
    await first.read(0, 100),
    first.first,
    first.last,
    first.epoch,
    first.key,
  ];
  assert.deepEqual(before.slice(2, 4), [4, 6]);
  await first.close();
  const again = await open(store, { historyCount: 3 });
  const after = [
    await again.latest(),
    await again.read(0, 100),
    again.first,
    again.last,
    again.epoch,
    again.key,
  ];
  assert.deepEqual(after, before);
  assert.deepEqual(await again.append([named]), [{ sequence: 1, isNew: false }]);
  assert.deepEqual(await again.append(drafts(1)), [{ sequence: 7, isNew: true }]);
  await again.close();
});

test('limits may be lower after a restart, and topics may not be cached any more', async (t) => {
  const store = temporaryFolder(t);
  const first = await open(store, { historyCount: 10_000, historyBytes: 100e6 });
  const topics = Array.from({ length: 50 }, (_, index) => ({
    topics: [`cached/${index}`],
    data: 'x',
    private: false,
  }));
  await first.append([...topics, ...drafts(5000)]);
  await first.close();
  const isCached = (/** @type {string} */ topic) => topic.endsWith('7');
  const again = await open(store, { historyCount: 10, isCached });
  assert.deepEqual(
    (await again.latest()).map(({ sequence }) => sequence),
    [8, 18, 28, 38, 48],
  );
  await until(() => again.first === 5041, 'the others are dropped', 10_000);
  assert.equal((await again.latest()).length, 5);
  await again.close();
  const last = await open(store);
  assert.equal((await last.latest()).length, 5, 'forgotten for good');
  await last.close();
});

test('a wiped store starts a new epoch', async (t) => {
  const store = temporaryFolder(t);
  const first = await open(store);
  await first.append(drafts(3));
  await first.close();
  rmSync(store, { recursive: true });
  const again = await open(store);
  assert.notEqual(again.epoch, first.epoch);
  assert.notDeepEqual(again.key, first.key);
  assert.equal(again.last, 0);
  await again.close();
});

test('only the owner of a new store can read it', async (t) => {
  const store = join(temporaryFolder(t), 'deep', 'store');
  const broker = await open(store);
  assert.equal(statSync(store).mode & 0o777, 0o700);
  assert.equal(statSync(join(store, 'data.mdb')).mode & 0o777, 0o600);
  await broker.close();
});

test('a store is used by one server at a time, and one that was killed does not count', async (t) => {
  const store = temporaryFolder(t);
  const { child, lines, kill } = startWriter(t, store);
  await until(() => lines.length > 1, 'it has begun');
  await assert.rejects(open(store), {
    name: 'HoldfastError',
    code: 'STORE',
    message: `--store ${store} is in use by process ${child.pid}: stop that server, or use another folder`,
  });
  await kill();
  const broker = await open(store);
  await assert.rejects(open(store), { code: 'STORE', message: /in use by process/ });
  assert.deepEqual((await broker.append(drafts(1))).length, 1);
  await broker.close();
});

test('a server that could not see that the store is in use takes it over, and the other one can only read', async (t) => {
  const store = temporaryFolder(t);
  const broker = await open(store);
  await broker.append(drafts(1));
  tamper(store, {
    owner: { pid: 1, started: '1', boot: '', space: 'another container', token: 1, syncs: true },
  });
  await assert.rejects(broker.append(drafts(1)), {
    code: 'STORE',
    message: `another server has taken over --store ${store}: stop one of the two`,
  });
  assert.equal((await broker.read(0, 10)).length, 1);
  await broker.close();
});

test('after a loss of power without --store-sync there is a new epoch, because what clients have seen may be lost', async (t) => {
  for (const [syncs, isNew] of /** @type {const} */ ([
    [false, true],
    [true, false],
  ])) {
    const store = temporaryFolder(t);
    const first = await open(store, { syncs });
    await first.append(drafts(2));
    await first.close();
    tamper(store, { owner: { pid: 1, started: '1', boot: 'before', space: '', token: 1, syncs } });
    const again = await open(store, { syncs });
    assert.equal(again.epoch !== first.epoch, isNew);
    assert.equal((await again.read(0, 10)).length, 2);
    await again.close();
  }
});

test('a store of a newer version is refused', async (t) => {
  const store = temporaryFolder(t);
  await (await open(store)).close();
  tamper(store, { format: 2 });
  await assert.rejects(open(store), {
    code: 'STORE',
    message: `--store ${store} has format 2, and this version of Holdfast knows only 1: use a newer version, or another folder`,
  });
});

test('a folder that can not be used is refused with one line', async (t) => {
  const folder = temporaryFolder(t);
  writeFileSync(join(folder, 'file'), '');
  await assert.rejects(open(join(folder, 'file')), {
    code: 'STORE',
    message: /^can't open --store .*file: /,
  });
  await assert.rejects(open('/proc/holdfast'), {
    code: 'STORE',
    message: /^can't open --store \/proc\/holdfast: /,
  });
  await assert.rejects(open(join(folder, 'file', 'below')), {
    code: 'STORE',
    message: /^can't open --store /,
  });
});

test('the database of another program is refused', async (t) => {
  const store = temporaryFolder(t);
  const { open: openLmdb } = await import('lmdb');
  const root = openLmdb({ path: store, noSubdir: false });
  await root.put('their key', 1);
  await root.close();
  await assert.rejects(open(store), { code: 'STORE', message: /has the LMDB database of another program/ });
});

test('a damaged store is refused, and does not end the process', async (t) => {
  const store = temporaryFolder(t);
  const broker = await open(store);
  await broker.append(drafts(500, 'x'.repeat(1000)));
  await broker.close();
  const data = readFileSync(join(store, 'data.mdb'));
  const damages = [
    () => truncateSync(join(store, 'data.mdb'), Math.floor(data.length / 2)),
    () => truncateSync(join(store, 'data.mdb'), 5000),
    () =>
      writeFileSync(
        join(store, 'data.mdb'),
        data.map((byte, index) => (index > 8192 ? byte ^ 0x55 : byte)),
      ),
    () => writeFileSync(join(store, 'data.mdb'), 'not a database '.repeat(1000)),
  ];
  for (const damage of damages) {
    writeFileSync(join(store, 'data.mdb'), data);
    damage();
    await assert.rejects(open(store), {
      code: 'STORE',
      message:
        /^--store \S+ is damaged \(.+\): move it away to start with an empty one, or use another folder$/,
    });
  }
  writeFileSync(join(store, 'data.mdb'), data);
  const again = await open(store);
  assert.equal((await readAll(again)).length, 500);
  await again.close();
});

test('a store that is deleted or cut while it is open rejects appends', async (t) => {
  const store = temporaryFolder(t);
  const file = join(store, 'data.mdb');
  for (const [remove, how] of /** @type {const} */ ([
    [() => renameSync(file, join(store, 'moved')), 'was deleted or replaced'],
    [() => rmSync(store, { recursive: true }), 'was deleted or replaced'],
    [() => truncateSync(file, 8192), 'was cut'],
  ])) {
    const broker = await open(store);
    await broker.append(drafts(100, 'x'.repeat(1000)));
    remove();
    const message = `${file} ${how} while the server was using it: restart the server`;
    await assert.rejects(broker.append(drafts(1)), { code: 'STORE', message });
    await assert.rejects(broker.append(drafts(1)), { code: 'STORE', message });
    await broker.close();
    rmSync(store, { recursive: true, force: true });
    mkdirSync(store);
  }
});

/** @param {string} folder with 1 MiB, on which another file leaves little room */
async function assertFullDisk(folder) {
  writeFileSync(join(folder, 'filler'), Buffer.alloc(400_000));
  const store = join(folder, 'store');
  const broker = await open(store);
  /** @type {number[]} */
  const followed = [];
  broker.follow((publications) => void followed.push(...publications.map(({ sequence }) => sequence)));
  let stored = 0;
  const append = async () => {
    stored += (await broker.append(drafts(3, 'x'.repeat(4000)))).length;
  };
  const fill = async () => {
    for (;;) await append();
  };
  const refusal = {
    code: 'STORE',
    message: `can't write --store ${store}: the disk is full, free some space`,
  };
  await assert.rejects(fill(), refusal);
  await assert.rejects(append(), refusal);
  assert.deepEqual([(await broker.read(0, 1000)).length, broker.last], [stored, stored]);
  rmSync(join(folder, 'filler'));
  await until(
    () =>
      append().then(
        () => true,
        () => false,
      ),
    'there is space again',
    10_000,
  );
  assert.deepEqual(
    followed,
    Array.from({ length: stored }, (_, index) => index + 1),
  );
  await broker.close();
}

test('a full disk rejects appends, and once there is space they are stored again, without a gap', async (t) => {
  const folder = temporaryFolder(t);
  const mount = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'none', folder], { encoding: 'utf8' });
  if (mount.error || mount.status !== 0)
    return t.skip(`no disk can be mounted here: ${mount.error?.message ?? mount.stderr}`);
  try {
    await assertFullDisk(folder);
  } finally {
    spawnSync('umount', ['-l', folder]);
  }
});

test('without the package lmdb, --store says so, and memory still works', (t) => {
  const folder = temporaryFolder(t);
  for (const name of ['broker', 'lib', 'package.json'])
    cpSync(join(ROOT, name), join(folder, name), { recursive: true });
  const code = `
    const { openBroker } = await import('./broker/index.js');
    await openBroker({ store: '', isCached: () => false });
    await openBroker({ store: 'store', isCached: () => false }).catch(({ code, message }) => console.log(code, message));
    process.exit();`;
  const args = ['--input-type=module', '-e', code];
  const { stdout, stderr } = spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8' });
  assert.match(
    stdout,
    /^STORE --store needs the package lmdb, which can't be loaded: install it \(.*lmdb@/,
    stderr,
  );
});
