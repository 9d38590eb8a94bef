import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { groupFolders } from '../limits/groups.js';
import { parseMemory, parseNofile, parseStatus, readMachine } from '../limits/kernel.js';
import { temporaryFolder } from './helpers/server.js';

test('file descriptors and the system call filter are read as the kernel writes them', () => {
  assert.deepEqual(
    parseNofile(
      'Limit     Soft Limit   Hard Limit   Units\nMax open files            1024                 524288               files     \n',
    ),
    { soft: 1024, hard: 524_288 },
  );
  assert.deepEqual(parseNofile('Max open files            1024 unlimited files\n').hard, 1_048_576);
  const status = (/** @type {number} */ seccomp, /** @type {string} */ rights) =>
    parseStatus(`CapEff:\t${rights}\nSeccomp:\t${seccomp}\nSeccomp_filters:\t1\n`);
  assert.deepEqual(status(0, '0000000000000000'), { canUnshare: true, isPrivileged: false });
  assert.deepEqual(status(2, '00000000a80425fb'), { canUnshare: false, isPrivileged: false });
  assert.deepEqual(status(2, '000001fffeffffff'), { canUnshare: true, isPrivileged: true });
});

test('available memory is what the kernel says, or all memory if it does not say', () => {
  assert.deepEqual(parseMemory('MemTotal: 1000 kB\nMemAvailable:  600 kB\n'), {
    totalBytes: 1_024_000,
    availableBytes: 614_400,
  });
  assert.equal(parseMemory('MemTotal: 1000 kB\n').availableBytes, 1_024_000);
  assert.ok(parseMemory('').totalBytes > 1e6);
});

test('control groups are searched in all places, including their parents', () => {
  assert.deepEqual(groupFolders('0::/a/b\n'), [
    'sys/fs/cgroup/a/b',
    'sys/fs/cgroup/a',
    'sys/fs/cgroup/',
    'sys/fs/cgroup/unified/a/b',
    'sys/fs/cgroup/unified/a',
    'sys/fs/cgroup/unified/',
  ]);
  assert.deepEqual(groupFolders('4:memory:/x\n3:cpuset:/y\n'), [
    'sys/fs/cgroup/memory/x',
    'sys/fs/cgroup/memory/',
  ]);
});

/** @param {import('node:test').TestContext} t @param {Record<string, string>} files @returns {import('../limits/groups.js').Group} */
function groupIn(t, files) {
  const root = temporaryFolder(t);
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), `${text}\n`);
  }
  return readMachine(root).group;
}

test('the tightest limit of all parents counts, and cached files count as free (cgroup v2)', (t) => {
  const group = groupIn(t, {
    'proc/self/cgroup': '0::/app/inner',
    'sys/fs/cgroup/app/inner/memory.max': 'max',
    'sys/fs/cgroup/app/inner/memory.current': '1000',
    'sys/fs/cgroup/app/inner/pids.max': 'max',
    'sys/fs/cgroup/app/inner/cpu.max': 'max 100000',
    'sys/fs/cgroup/app/memory.max': '4294967296',
    'sys/fs/cgroup/app/memory.current': '1294967296',
    'sys/fs/cgroup/app/memory.stat': 'anon 5\ninactive_file 500000000\nactive_file 7',
    'sys/fs/cgroup/app/cpu.max': '150000 100000',
    'sys/fs/cgroup/app/pids.max': '4096',
    'sys/fs/cgroup/app/pids.current': '14',
  });
  assert.deepEqual(group, {
    memoryBytes: 4_294_967_296,
    memoryFreeBytes: 3_500_000_000,
    cores: 1.5,
    pids: 4096,
    pidsNow: 14,
  });
});

test('the same with cgroup v1; if a path is not below the mount, the mount itself counts', (t) => {
  const group = groupIn(t, {
    'proc/self/cgroup': '4:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n2:pids:/docker/abc',
    'sys/fs/cgroup/memory/memory.limit_in_bytes': '1000000000',
    'sys/fs/cgroup/memory/memory.usage_in_bytes': '400000000',
    'sys/fs/cgroup/cpu/cpu.cfs_quota_us': '-1',
    'sys/fs/cgroup/cpu/cpu.cfs_period_us': '100000',
    'sys/fs/cgroup/pids/pids.max': 'max',
  });
  assert.deepEqual(group, {
    memoryBytes: 1_000_000_000,
    memoryFreeBytes: 600_000_000,
    cores: null,
    pids: null,
    pidsNow: 0,
  });
});
