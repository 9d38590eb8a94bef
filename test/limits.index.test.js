import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { platform } from 'node:os';
import { test } from 'node:test';
import {
  findLimits,
  memoryRefusal,
  mostStreams,
  SYSCTL_FILE,
  streamsHere,
  verdictLine,
} from '../limits/index.js';
import { readMachine } from '../limits/kernel.js';

/** @typedef {import('../limits/kernel.js').Machine} Machine */
/** @typedef {import('../limits/needs.js').Wish} Wish */
/** @typedef {import('../limits/finding.js').Finding} Finding */

const FOLDER = new URL('fixtures/machines/', import.meta.url);
const NAMES = readdirSync(FOLDER).map((file) => file.replace('.json', ''));

/** @param {string} name @returns {Machine} a saved machine */
const saved = (name) => JSON.parse(readFileSync(new URL(`${name}.json`, FOLDER), 'utf8'));

/** @param {Partial<Wish>} [wish] @returns {Wish} */
const wishOf = (wish) => ({
  streams: 1_000_000,
  transport: 'hold',
  pingIntervalMs: 20_000,
  openRate: 1000,
  isFleetHere: false,
  ports: [8888],
  ...wish,
});

/** @param {string | Machine} machine @param {Partial<Wish>} [wish] */
const find = (machine, wish) =>
  findLimits(typeof machine === 'string' ? saved(machine) : machine, wishOf(wish));

/** @param {Finding[]} findings @param {string} name the first word of it is enough @returns {Finding} */
function named(findings, name) {
  const found = findings.find((finding) => finding.name === name || finding.name.startsWith(`${name} `));
  assert.ok(found, `a finding of ${name}`);
  return found;
}

/** @param {Finding[]} findings */
const forbidding = (findings) => findings.filter(({ isForbidding }) => isForbidding).map(({ name }) => name);

/** @param {Machine} machine @param {Record<string, string>} sysctls @returns {Machine} */
const withSysctls = (machine, sysctls) => ({ ...machine, sysctls: { ...machine.sysctls, ...sysctls } });

/** The machine after what the findings say was written and loaded. @param {Machine} machine @param {Finding[]} findings */
function fixed(machine, findings) {
  const { sysctls, nofile } = structuredClone(machine);
  for (const { fix, isMet } of findings.filter((finding) => !finding.isMet && finding.fix.file !== '')) {
    assert.equal(isMet, false);
    const [line] = fix.line.split('\n');
    const [, kind] = line.split(' ');
    if (fix.file === SYSCTL_FILE) sysctls[line.split(' = ')[0]] = line.split(' = ')[1];
    else nofile[/** @type {'soft' | 'hard'} */ (kind)] = Number(line.split(' ')[3]);
  }
  return { ...machine, sysctls, nofile };
}

/** Machines and wishes of many kinds. @returns {{ machine: Machine, wish: Wish, label: string }[]} */
function cases() {
  const wishes = [1, 15_000, 60_000, 1_000_000, 10_000_000].flatMap((streams) =>
    /** @type {const} */ (['hold', 'http']).flatMap((transport) =>
      [true, false].map((isFleetHere) =>
        wishOf({ streams, transport, isFleetHere, openRate: 20_000, ports: [8888, 40_000] }),
      ),
    ),
  );
  return NAMES.flatMap((name) =>
    wishes.map((wish) => ({ machine: saved(name), wish, label: `${name}, ${JSON.stringify(wish)}` })),
  );
}

test('a server tuned for a million streams is fine for them, and says so in one line', () => {
  const findings = find('tuned');
  assert.deepEqual(
    findings.filter(({ isMet }) => !isMet),
    [],
  );
  assert.equal(verdictLine(findings, 1_000_000), 'limits: fine for 1,000,000 streams');
});

test('a laptop is fine for 5,000 streams, but its firewall forbids a million', () => {
  assert.deepEqual(
    find('laptop', { streams: 5000 }).filter(({ isMet }) => !isMet),
    [],
  );
  assert.deepEqual(forbidding(find('laptop')), ['net.netfilter.nf_conntrack_max']);
});

test('a container with 4 GB is limited by its control group, not by the memory of the host', () => {
  const [name] = forbidding(find('container'));
  assert.match(name, /^memory of the control group/);
  const most = mostStreams(saved('container'), wishOf());
  assert.ok(most * 5164 < 4_183_818_240 && most > 600_000, `${most}`);
  assert.equal(named(find('container'), 'CPU').now, 200, 'two cores of the sixteen');
});

test('the machine that held a million streams together with the clients is allowed to', () => {
  const findings = find('this', { isFleetHere: true });
  assert.deepEqual(forbidding(findings), []);
  assert.ok(
    named(findings, 'nofile (hard)').isMet,
    'shards hold many times the descriptors a process may have',
  );
});

test('without shards more workers are used, and that is advice; if even they are too few, it is forbidden', () => {
  const machine = { ...saved('this'), canUnshare: false };
  const advice = named(find(machine), 'nofile (hard)');
  assert.deepEqual([advice.isMet, advice.isForbidding], [false, false]);
  assert.match(advice.why, /53 workers/);
  const bound = { ...machine, nofile: { soft: 128, hard: 128 } };
  assert.deepEqual(forbidding(find(bound)), ['nofile (hard)']);
  assert.equal(named(find(bound, { streams: 1000 }), 'nofile (hard)').isForbidding, false);
  assert.equal(mostStreams(bound, wishOf({ mostShards: 1 })), 1260, '21 workers of 60');
});

test('if the caller has tried whether threads get their own tables, that result is used', () => {
  const machine = { ...saved('this'), canUnshare: false };
  assert.equal(named(find(machine, { mostShards: 255 }), 'nofile (hard)').isMet, true);
  assert.equal(named(find('this', { mostShards: 1 }), 'nofile (hard)').isMet, false);
});

test('the soft limit of file descriptors does not matter, because Node raises it to the hard one', () => {
  const soft = named(find('laptop', { streams: 50_000, transport: 'http' }), 'nofile (soft)');
  assert.deepEqual([soft.now, soft.needed, soft.isMet], [1024, 'any', true]);
});

test('conntrack counts only if it is loaded, and forbids a run only if it tracks connections', () => {
  const machine = saved('laptop');
  const name = 'net.netfilter.nf_conntrack_max';
  assert.equal(named(find(machine), name).isForbidding, true);
  const idle = withSysctls(machine, { 'net.netfilter.nf_conntrack_count': '0' });
  assert.deepEqual([named(find(idle), name).isMet, named(find(idle), name).isForbidding], [false, false]);
  const none = { ...machine, sysctls: { ...machine.sysctls } };
  delete none.sysctls[name];
  assert.equal(
    find(none).some((finding) => finding.name === name),
    false,
  );
});

test('ports matter only with local clients: one address is too few for 100,000, sixteen are enough', () => {
  const name = 'net.ipv4.ip_local_port_range';
  assert.equal(
    find('this').some((finding) => finding.name === name),
    false,
  );
  const one = named(find('this', { isFleetHere: true, streams: 100_000, sources: 1 }), name);
  assert.equal(one.isForbidding, true);
  assert.match(one.fix.line, /give the clients 2 addresses/);
  const wider = named(find('this', { isFleetHere: true, streams: 40_000, sources: 1 }), name);
  assert.deepEqual([wider.isForbidding, wider.fix.line], [true, `${name} = 10240 65535`]);
  assert.equal(named(find('this', { isFleetHere: true, streams: 100_000, sources: 16 }), name).isMet, true);
});

test('a port of the server that clients could take is added to the reserved ones', () => {
  const machine = withSysctls(saved('this'), {
    'net.ipv4.ip_local_reserved_ports': '33000,40000-40010',
  });
  const wish = { isFleetHere: true, ports: [8888, 40_005, 50_000] };
  const finding = named(find(machine, wish), 'net.ipv4.ip_local_reserved_ports');
  assert.equal(finding.fix.line, 'net.ipv4.ip_local_reserved_ports = 33000,40000-40010,50000');
});

test('many pings forbid the run only if they alone need all cores', () => {
  const many = named(find('this', { pingIntervalMs: 10 }), 'CPU');
  assert.equal(many.isForbidding, true);
  const openings = named(find('this', { openRate: 1_000_000 }), 'CPU');
  assert.deepEqual([openings.isMet, openings.isForbidding], [false, false]);
});

test('clients on the same machine count twice: descriptors, buffers, memory', () => {
  const [alone, both] = [false, true].map((isFleetHere) => find('this', { isFleetHere }));
  for (const name of ['fs.file-max', 'fs.epoll.max_user_watches', 'net.ipv4.tcp_mem', 'memory']) {
    const ratio = Number(named(both, name).needed) / Number(named(alone, name).needed);
    assert.ok(ratio > 1.9 && ratio < 2.1, `${name}: ${ratio}`);
  }
});

test('after the suggested lines are written, all findings are met except those that no file can change', () => {
  for (const { machine, wish, label } of cases()) {
    const after = findLimits(fixed(machine, findLimits(machine, wish)), wish);
    for (const { name, fix, isMet } of after) assert.ok(isMet || fix.file === '', `${name}: ${label}`);
  }
});

test('no line lowers a limit; ranges of ports only widen', () => {
  for (const { machine, wish, label } of cases()) {
    for (const { fix } of findLimits(machine, wish).filter(({ fix }) => fix.file === SYSCTL_FILE)) {
      const [name, text] = fix.line.split(' = ');
      if (name.includes('reserved') || name.includes('compaction')) continue;
      const [was, now] = [machine.sysctls[name], text].map((values) => values.split(' ').map(Number));
      const lowers = now.map((value, i) => value < was[i] && !(name.includes('port_range') && i === 0));
      assert.ok(now.length === was.length && !lowers.includes(true), `${fix.line}: ${label}`);
    }
  }
});

test('the most that fits is not forbidden, and a hundredth more is', () => {
  for (const name of NAMES) {
    const most = mostStreams(saved(name), wishOf());
    assert.deepEqual(forbidding(find(name, { streams: most })), [], name);
    assert.notDeepEqual(forbidding(find(name, { streams: Math.ceil(most * 1.011) })), [], name);
  }
});

test('without --streams, the number is what the plan can hold, or less if memory is too small', () => {
  assert.equal(streamsHere(saved('this'), wishOf()), 37_878);
  const most = streamsHere(saved('container'), wishOf());
  assert.equal(most, mostStreams(saved('container'), wishOf()));
});

test('the line at the start names what forbids the run before any advice, and where to find more', () => {
  const somaxconn = withSysctls(saved('tuned'), { 'net.core.somaxconn': '128' });
  assert.equal(
    verdictLine(find(somaxconn, { streams: 60_000 }), 60_000),
    'limits: net.core.somaxconn is 128, should be 4096: run node scripts/tune.js check --streams 60000',
  );
  assert.equal(
    verdictLine(find(somaxconn, { streams: 60_000 }), 60_000, { hasTune: false }),
    'limits: net.core.somaxconn is 128, should be 4096: set net.core.somaxconn = 4096 in /etc/sysctl.d/90-holdfast.conf',
  );
  const both = { ...somaxconn, memory: { totalBytes: 1e9, availableBytes: 5e8 } };
  assert.match(
    verdictLine(find(both), 1_000_000),
    /^limits: memory \(free\) is 500 MB, must be 5.9 GB \(and 1 more\): run node scripts/,
  );
});

test('this machine can be read and judged', { skip: platform() !== 'linux' && 'no /proc here' }, () => {
  const machine = readMachine();
  assert.ok(Number(machine.sysctls['fs.nr_open']) >= machine.nofile.hard);
  assert.ok(machine.memory.totalBytes >= machine.memory.availableBytes && machine.threads > 0);
  assert.ok(named(findLimits(machine, wishOf({ streams: 1000 })), 'memory').isMet);
});

/** @param {number} availableBytes @param {number | null} [groupFreeBytes] @returns {Machine} */
function withMemory(availableBytes, groupFreeBytes = null) {
  const machine = saved(NAMES[0]);
  const group = { ...machine.group, memoryFreeBytes: groupFreeBytes };
  return { ...machine, cores: 2, memory: { totalBytes: availableBytes, availableBytes }, group };
}

for (const transport of /** @type {const} */ (['hold', 'http'])) {
  test(`what memory forbids is refused, and what fits is accepted: ${transport}`, () => {
    const machine = withMemory(24e9);
    const line = memoryRefusal(machine, wishOf({ streams: 100_000_000, transport }));
    assert.match(
      line,
      /^--streams 100000000 needs \d[\d.]* [GT]B of memory with the \w+ transport, but memory/,
    );
    const [, fits] = /use --streams (\d+) or fewer, or --force to start anyway$/.exec(line) ?? [];
    assert.ok(Number(fits) > 100_000, line);
    assert.equal(memoryRefusal(machine, wishOf({ streams: Number(fits), transport })), '');
    assert.notEqual(memoryRefusal(machine, wishOf({ streams: Number(fits) * 1.02, transport })), '');
  });
}

test('the memory of the control group counts if it is less', () => {
  const line = memoryRefusal(withMemory(24e9, 500e6), wishOf({ streams: 1_000_000 }));
  assert.match(line, /but memory of the control group \(free\) is 500 MB, enough for about/);
});

test('processes alone can be too many; a server without wishes is never refused', () => {
  const small = withMemory(100e6);
  assert.match(
    memoryRefusal(small, wishOf({ streams: 0, workers: 500 })),
    /^--workers 500 needs .* use fewer --workers/,
  );
  assert.match(
    memoryRefusal(small, wishOf({ streams: 10, workers: 500 })),
    /: use fewer --workers, or --force/,
  );
  assert.equal(memoryRefusal(small, wishOf({ streams: 0 })), '');
});

test('TLS takes 100 bytes more of each stream', () => {
  const [plain, secure] = [false, true].map((isTls) => named(find('this', { isTls }), 'memory').needed);
  assert.equal(Number(secure) - Number(plain), 100 * 1_000_000);
});
