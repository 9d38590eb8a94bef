/*
 * Drones on EC2: against moto's server, and what can be tested without a server.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import {
  DescribeInstanceAttributeCommand,
  DescribeInstancesCommand,
  DescribeSecurityGroupsCommand,
  EC2Client,
  RunInstancesCommand,
} from '@aws-sdk/client-ec2';
import { FOLDER, MOST_USER_DATA_BYTES, userData } from '../fleet/on/ec2/cloudinit.js';
import { ec2, OPTIONS } from '../fleet/on/ec2/ec2.js';
import { collect } from '../fleet/on/ec2/parcel.js';
import { readOptions } from '../lib/options.js';
import { spawnDrone, urlOf } from './helpers/drone.js';
import { startMoto } from './helpers/moto.js';
import { startProxy } from './helpers/proxy.js';
import { ROOT, startServer, temporaryFolder } from './helpers/server.js';
import { until } from './helpers/until.js';

const REGIONS = ['us-east-1', 'eu-west-1', 'ap-south-1'];
const TOKEN = 'a "$token` of \\ 24 \'chars'.replaceAll(' ', '_');
const PARAMS = { n: '1000', host: '10.1.2.3', channel: 'per 100% $HOME "x"' };

// Keeps the machine's own AWS configuration out of the tests.
Object.assign(process.env, {
  AWS_ACCESS_KEY_ID: 'testing',
  AWS_SECRET_ACCESS_KEY: 'testing',
  AWS_REGION: 'us-east-1',
  AWS_CONFIG_FILE: '/dev/null',
  AWS_SHARED_CREDENTIALS_FILE: '/dev/null',
  AWS_EC2_METADATA_DISABLED: 'true',
});
for (const name of ['AWS_PROFILE', 'AWS_SESSION_TOKEN', 'AWS_ENDPOINT_URL', 'AWS_MAX_ATTEMPTS']) {
  delete process.env[name];
}

/**
 * @param {import('node:test').TestContext} t
 * @param {Partial<import('../fleet/on/ec2/ec2.js').Ec2Options>} options
 */
function placeOf(t, options) {
  /** @type {string[]} */
  const lines = [];
  const say = (/** @type {string} */ line) => lines.push(line);
  const place = ec2({
    regions: REGIONS,
    instanceType: 't3.small',
    name: 'test',
    token: TOKEN,
    say,
    ...options,
  });
  t.after(() => place.close());
  return { place, lines };
}

/** @param {import('node:test').TestContext} t @param {string} endpoint @param {string} region */
function clientOf(t, endpoint, region) {
  const client = new EC2Client({ region, endpoint });
  t.after(() => client.destroy());
  return client;
}

/** @param {{ place: string }[]} members @returns {Record<string, number>} */
function countsOf(members) {
  /** @type {Record<string, number>} */
  const counts = {};
  for (const { place } of members) counts[place] = (counts[place] ?? 0) + 1;
  return counts;
}

/** @param {Buffer} bytes of the user data @returns {any} */
function configOf(bytes) {
  const text = gunzipSync(bytes).toString();
  assert.ok(text.startsWith('#cloud-config\n'));
  return JSON.parse(text.slice('#cloud-config\n'.length));
}

/**
 * Writes the files as cloud-init does, but below a folder.
 * @param {any} config @param {string} folder
 */
function writeFiles(config, folder) {
  for (const { path, content, encoding, permissions } of config.write_files) {
    const file = join(folder, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, Buffer.from(content, encoding === 'b64' ? 'base64' : 'utf8'), {
      mode: Number.parseInt(permissions, 8),
    });
  }
}

/** @param {any} config @param {string} name @returns {any} the file whose path ends with the name */
function fileIn(config, name) {
  return config.write_files.find((/** @type {{ path: string }} */ { path }) => path.endsWith(name));
}

/** The words of ExecStart, parsed as systemd does. @param {string} unit @returns {string[]} */
function commandOf(unit) {
  const [, line] = /** @type {RegExpExecArray} */ (/^ExecStart=(.*)$/m.exec(unit));
  return [...line.matchAll(/"((?:\\.|[^"\\])*)"|(\S+)/g)].map(([, quoted, plain]) =>
    (quoted?.replace(/\\(.)/g, '$1') ?? plain).replaceAll('%%', '%').replaceAll('$$', '$'),
  );
}

test('the user data fits what EC2 accepts', () => {
  const bytes = userData(PARAMS, TOKEN);
  assert.ok(bytes.length < MOST_USER_DATA_BYTES, `${bytes.length} bytes`);
  assert.equal(MOST_USER_DATA_BYTES, 16_384);
});

test('parameters that make the user data too long are an error of one line', () => {
  const sources = Array.from(
    { length: 20_000 },
    (_, i) => `10.${(i * 7919) % 256}.${(i * 104729) % 256}.${i % 256}`,
  );
  assert.throws(() => userData({ ...PARAMS, sources: sources.join(',') }, TOKEN), { code: 'USER_DATA' });
});

test('instances get exactly the files that the drone imports, which need no packages', () => {
  const files = collect();
  for (const path of [
    'fleet/drone.js',
    'fleet/drone/counters.js',
    'fleet/drone/dial.plain.js',
    'lib/router.js',
  ])
    assert.ok(path in files, path);
  for (const path of Object.keys(files))
    assert.doesNotMatch(path, /cli|commands|fleet\/on|server|monitor|transport|types|topics\//);
  for (const text of Object.values(files))
    assert.doesNotMatch(text, /streams to keep open|publications skipped/, 'no help');
});

test('the files are shorter than their sources, and leave room in the user data', () => {
  for (const [path, text] of Object.entries(collect()))
    assert.ok(text.length < readFileSync(join(ROOT, path), 'utf8').length, path);
  const bytes = userData(PARAMS, TOKEN).length;
  const most = Math.floor(0.99 * MOST_USER_DATA_BYTES);
  assert.ok(
    bytes <= most,
    `${bytes} bytes, of at most ${most}: what the drone does not need should not be in its files`,
  );
});

test('the token is in one file that only root can read, and in no command', () => {
  const config = configOf(userData(PARAMS, TOKEN));
  const secret = fileIn(config, '.env');
  assert.equal(secret.permissions, '0600');
  assert.match(secret.content, /^HOLDFAST_TOKEN="/);
  const others = config.write_files.filter((/** @type {unknown} */ one) => one !== secret);
  assert.ok(!JSON.stringify([others, config.runcmd]).includes('_24_'));
});

test('the service runs without privileges, with many descriptors, and passes parameters on unchanged', () => {
  const unit = fileIn(configOf(userData(PARAMS, TOKEN)), '.service').content;
  assert.match(unit, /^DynamicUser=yes$/m);
  assert.match(unit, /^LimitNOFILE=1048576$/m);
  assert.match(unit, /^EnvironmentFile=\/etc\/holdfast-drone\.env$/m);
  const words = commandOf(unit);
  assert.deepEqual(words.slice(0, 4), [`${FOLDER}/node`, 'fleet/drone.js', '--listen', '0.0.0.0']);
  assert.equal(words[words.indexOf('--channel') + 1], PARAMS.channel);
});

test('the setup script is valid for sh, and installs no packages with npm', () => {
  const config = configOf(userData(PARAMS, TOKEN));
  const { status, stderr } = spawnSync('sh', ['-n'], {
    input: fileIn(config, 'setup.sh').content,
    encoding: 'utf8',
  });
  assert.deepEqual({ status, stderr }, { status: 0, stderr: '' });
  assert.doesNotMatch(fileIn(config, 'setup.sh').content, /npm/);
  assert.deepEqual(config.runcmd, [['sh', `${FOLDER}/setup.sh`]]);
});

test('systemd accepts the service', (t) => {
  const folder = temporaryFolder(t);
  const file = join(folder, 'holdfast-drone.service');
  const unit = fileIn(configOf(userData(PARAMS, TOKEN)), '.service').content;
  writeFileSync(file, unit.replace(`${FOLDER}/node`, process.execPath).replace(/^WorkingDirectory=.*$/m, ''));
  const { error, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', file], {
    encoding: 'utf8',
  });
  if (error) return t.skip('systemd is missing');
  assert.doesNotMatch(stderr, /holdfast-drone\.service:/);
});

test('a dry run prints what it would start and cost, without a server or credentials', async (t) => {
  const dry = { dryRun: true, endpoint: 'http://127.0.0.1:1', token: '' };
  const { place, lines } = placeOf(t, dry);
  assert.deepEqual(await place.start(40, PARAMS), []);
  assert.match(
    lines[0],
    /^dry run: fleet 'test' would start 40 x t3\.small with 1,000 streams each \(40,000\)$/,
  );
  assert.deepEqual(lines.slice(1, 4), [
    '  us-east-1: 14 x t3.small, newest Amazon Linux 2023',
    '  eu-west-1: 13 x t3.small, newest Amazon Linux 2023',
    '  ap-south-1: 13 x t3.small, newest Amazon Linux 2023',
  ]);
  assert.match(lines[4], /open to nobody/);
  assert.match(lines[5], /^estimate: \$1\.03 per hour = 40 x .*us-east-1 in \d{4}-\d\d/);
  assert.deepEqual(await place.list(), []);
  assert.equal(await place.stop('all'), 0);
});

test('a dry run says if the price of a type is unknown', async (t) => {
  const { place, lines } = placeOf(t, { dryRun: true, instanceType: 'u7i-12tb.224xlarge' });
  await place.start(1, PARAMS);
  assert.match(lines.at(-1) ?? '', /^estimate: unknown price for u7i-12tb\.224xlarge/);
});

test('missing credentials are an error of one line that says where to set them', () => {
  const script = `const { ec2 } = await import('./fleet/on/ec2/ec2.js');
    const { exitWith } = await import('./lib/errors.js');
    ec2({ regions: ['us-east-1'], instanceType: 't3.small', name: 'x', token: '', endpoint: 'http://127.0.0.1:1', say() {} })
      .list().catch((error) => exitWith('fleet', error));`;
  const { AWS_ACCESS_KEY_ID: _, AWS_SECRET_ACCESS_KEY: __, ...env } = process.env;
  const args = ['--input-type=module', '-e', script];
  const { status, stderr } = spawnSync(process.execPath, args, { cwd: ROOT, env, encoding: 'utf8' });
  assert.match(stderr, /^fleet: no AWS credentials: set AWS_PROFILE, [^\n]*--dry-run needs none\n$/);
  assert.equal(status, 1);
});

test('mistakes are refused before anything starts', async (t) => {
  const { place } = placeOf(t, { endpoint: 'http://127.0.0.1:1' });
  await assert.rejects(place.start(1, { n: '5' }), { code: 'BAD_PARAM', message: /the drone itself/ });
  await assert.rejects(place.start(1, { speed: '5' }), { code: 'BAD_PARAM' });
  const short = placeOf(t, { endpoint: 'http://127.0.0.1:1', token: 'short' });
  await assert.rejects(short.place.start(1, PARAMS), { code: 'NO_TOKEN' });
  const images = placeOf(t, { endpoint: 'http://127.0.0.1:1', ami: ['ami-12345678'] });
  await assert.rejects(images.place.start(1, PARAMS), {
    code: 'BAD_OPTION',
    message: /1 images for 3 regions/,
  });
});

test('the options are parsed and checked', () => {
  const read = (/** @type {string[]} */ ...args) => readOptions(OPTIONS, args, {}).values;
  assert.deepEqual(read('--regions', 'us-east-1,eu-west-1').regions, ['us-east-1', 'eu-west-1']);
  assert.equal(read('--from', '203.0.113.7').from, '203.0.113.7/32');
  assert.equal(read('--from', '2001:db8::1').from, '2001:db8::1/128');
  assert.equal(read().from, 'nobody');
  for (const args of [
    ['--from', '203.0.113.7/33'],
    ['--from', 'me'],
    ['--from', '10.0.0.0/'],
    ['--regions', 'mars'],
  ])
    assert.throws(() => read(...args), { code: 'BAD_OPTION' });
});

test('against the API of EC2', async (t) => {
  const { endpoint, problem } = await startMoto(t);
  if (problem) return t.skip(problem);

  await t.test(
    '40 instances start in three regions, are listed, and end; other instances stay',
    async (t) => {
      const { place, lines } = placeOf(t, { endpoint, name: 'forty', from: '203.0.113.7/32' });
      const client = clientOf(t, endpoint, 'us-east-1');
      const image = await anImage(endpoint, t);
      const others = [
        await startOther(client, image, []),
        await startOther(client, image, tagOf('forty-two')),
      ];

      const started = await place.start(40, PARAMS);
      assert.deepEqual(countsOf(started), { 'us-east-1': 14, 'eu-west-1': 13, 'ap-south-1': 13 });
      const listed = await place.list();
      assert.deepEqual(listed.map(({ name }) => name).sort(), started.map(({ name }) => name).sort());
      for (const { url, token, state } of listed) {
        assert.match(url, /^http:\/\/\d+\.\d+\.\d+\.\d+:8889$/);
        assert.deepEqual({ token, state }, { token: TOKEN, state: 'running' });
      }

      assert.equal(await place.stop(4), 4);
      assert.deepEqual(countsOf(await place.list()), { 'us-east-1': 12, 'eu-west-1': 12, 'ap-south-1': 12 });
      assert.equal(await place.stop('all'), 36);
      assert.deepEqual(await place.list(), []);
      assert.deepEqual(await statesOf(client, others), ['running', 'running']);
      for (const region of REGIONS)
        assert.deepEqual(
          await groupsOf(clientOf(t, endpoint, region), 'forty'),
          [],
          `group left in ${region}`,
        );
      assert.ok(!lines.join().includes(TOKEN));
    },
  );

  await t.test('instances and groups are tagged, and the token is in no tag', async (t) => {
    const { place } = placeOf(t, { endpoint, name: 'tagged', regions: ['us-east-1'] });
    const [{ name }] = await place.start(1, PARAMS);
    const client = clientOf(t, endpoint, 'us-east-1');
    const { Reservations = [] } = await client.send(new DescribeInstancesCommand({ InstanceIds: [name] }));
    const instance = Reservations[0].Instances?.[0];
    const tags = Object.fromEntries((instance?.Tags ?? []).map(({ Key, Value }) => [Key, Value]));
    assert.deepEqual(tags, { 'holdfast-fleet': 'tagged', Name: 'holdfast-drone-tagged' });
    assert.ok(!JSON.stringify(instance).includes('_24_'));
    const [group] = await groupsOf(client, 'tagged');
    assert.equal(instance?.SecurityGroups?.[0].GroupId, group.GroupId);
  });

  await t.test('the control port is open to nobody, or to the last --from', async (t) => {
    const shared = { endpoint, name: 'walled', regions: ['us-east-1'] };
    const rules = async () =>
      (await groupsOf(clientOf(t, endpoint, 'us-east-1'), 'walled'))[0].IpPermissions ?? [];
    const closed = placeOf(t, shared);
    await closed.place.start(1, PARAMS);
    assert.deepEqual(await rules(), []);
    assert.match(closed.lines[0], /open to nobody \(the default\).*--from/);
    for (const from of ['203.0.113.7/32', '198.51.100.0/24']) {
      const { place, lines } = placeOf(t, { ...shared, from });
      assert.deepEqual(await place.start(0, PARAMS), []);
      const [{ FromPort, ToPort, IpRanges = [] }, ...more] = await rules();
      const cidrs = IpRanges.map(({ CidrIp }) => CidrIp);
      assert.deepEqual(
        { FromPort, ToPort, cidrs, more },
        { FromPort: 8889, ToPort: 8889, cidrs: [from], more: [] },
      );
      assert.ok(lines[0].includes(`open only to ${from}`));
    }
    const wide = placeOf(t, { ...shared, from: '0.0.0.0/0' });
    await wide.place.start(0, PARAMS);
    assert.match(wide.lines[0], /OPEN TO EVERYBODY: only the token protects it/);
  });

  await t.test('without --regions, instances are found in all regions', async (t) => {
    const far = placeOf(t, { endpoint, name: 'far', regions: ['sa-east-1'] });
    await far.place.start(2, PARAMS);
    const { place } = placeOf(t, { endpoint, name: 'far', regions: 'auto' });
    assert.deepEqual(countsOf(await place.start(1, PARAMS)), { 'us-east-1': 1 });
    assert.deepEqual(countsOf(await place.list()), { 'sa-east-1': 2, 'us-east-1': 1 });
    assert.equal(await place.stop('all'), 3);
  });

  await t.test('throttled requests are retried', async (t) => {
    let left = 4;
    const busy = { status: 503, code: 'RequestLimitExceeded', message: 'Request limit exceeded.' };
    /** @type {(string | null)[]} */
    const tokens = [];
    const proxy = await startProxy(t, endpoint, (action, _, body) => {
      if (action !== 'RunInstances') return null;
      tokens.push(body.get('ClientToken'));
      return left-- > 0 ? busy : null;
    });
    const { place } = placeOf(t, { endpoint: proxy.endpoint, name: 'busy', regions: ['us-east-1'] });
    assert.equal((await place.start(3, PARAMS)).length, 3);
    assert.equal(tokens.length, 5);
    assert.match(tokens[0] ?? '', /^[\da-f-]{36}$/);
    assert.equal(new Set(tokens).size, 1, 'all are the same request, which EC2 executes once');
  });

  await t.test('instances that one region has no capacity for start in the others', async (t) => {
    const full = {
      status: 500,
      code: 'InsufficientInstanceCapacity',
      message: 'We have no sufficient capacity.',
    };
    const refuse = (
      /** @type {string} */ action,
      /** @type {string} */ region,
      /** @type {URLSearchParams} */ body,
    ) =>
      action === 'RunInstances' && region === 'eu-west-1' && Number(body.get('MaxCount')) > 1 ? full : null;
    const proxy = await startProxy(t, endpoint, refuse);
    const { place, lines } = placeOf(t, { endpoint: proxy.endpoint, name: 'full' });
    assert.deepEqual(countsOf(await place.start(12, PARAMS)), {
      'us-east-1': 6,
      'eu-west-1': 1,
      'ap-south-1': 5,
    });
    assert.ok(
      lines.some((line) => /eu-west-1: We have no .*InsufficientInstanceCapacity.*other regions/.test(line)),
    );
    const tries = proxy.asked.filter(
      ({ action, region }) => action === 'RunInstances' && region === 'eu-west-1',
    );
    assert.equal(tries.length, 3, 'for 4, 2 and 1; none is retried');
  });

  await t.test('if no region has capacity, it is an error of one line', async (t) => {
    const full = { status: 500, code: 'InsufficientInstanceCapacity', message: 'No room.' };
    const proxy = await startProxy(t, endpoint, (action) => (action === 'RunInstances' ? full : null));
    const { place } = placeOf(t, { endpoint: proxy.endpoint, name: 'none' });
    await assert.rejects(place.start(2, PARAMS), {
      code: 'NO_CAPACITY',
      message: /^0 of 2 instances were started/,
    });
  });

  await t.test('a refusal of AWS is an error of one line with its code', async (t) => {
    const denied = { status: 403, code: 'UnauthorizedOperation', message: 'You are not authorized.' };
    const proxy = await startProxy(t, endpoint, (_, region) => (region === 'eu-west-1' ? denied : null));
    const { place } = placeOf(t, { endpoint: proxy.endpoint, name: 'denied' });
    const line = 'ec2 in eu-west-1: You are not authorized. (UnauthorizedOperation)';
    await assert.rejects(place.list(), { name: 'HoldfastError', message: line });
    assert.equal(proxy.asked.filter(({ region }) => region === 'eu-west-1').length, 1);
  });

  await t.test('regions without permission are skipped unless they were named', async (t) => {
    const denied = { status: 403, code: 'UnauthorizedOperation', message: 'You are not authorized.' };
    const proxy = await startProxy(t, endpoint, (_, region) => (region === 'eu-west-1' ? denied : null));
    const { place, lines } = placeOf(t, { endpoint: proxy.endpoint, name: 'partly', regions: 'auto' });
    await place.start(1, PARAMS);
    assert.equal(await place.stop('all'), 1);
    assert.match(lines.join('\n'), /eu-west-1: You are not authorized.*skipping this region/);
  });

  await t.test('security groups that stay in use are reported', async (t) => {
    const used = { status: 400, code: 'DependencyViolation', message: 'resource sg has a dependent object' };
    const proxy = await startProxy(t, endpoint, (action) => (action === 'DeleteSecurityGroup' ? used : null));
    const { place, lines } = placeOf(t, {
      endpoint: proxy.endpoint,
      name: 'stuck',
      regions: ['us-east-1'],
      endingMs: 0,
    });
    await place.start(1, PARAMS);
    assert.equal(await place.stop('all'), 1);
    assert.match(lines.at(-1) ?? '', /^security groups still in use: us-east-1/);
  });

  await t.test('the drone in the user data runs, and answers requests that have its token', async (t) => {
    const server = await startServer(t, ['--ping-interval', '200']);
    const { place } = placeOf(t, { endpoint, name: 'lives', regions: ['us-east-1'] });
    const [{ name }] = await place.start(1, {
      n: '20',
      host: '10.1.2.3',
      port: String(server.port),
      channel: '',
    });
    const client = clientOf(t, endpoint, 'us-east-1');
    const asked = new DescribeInstanceAttributeCommand({ InstanceId: name, Attribute: 'userData' });
    const { UserData } = await client.send(asked);
    const config = configOf(Buffer.from(UserData?.Value ?? '', 'base64'));

    const folder = temporaryFolder(t);
    writeFiles(config, folder);
    const home = join(folder, FOLDER);
    const unpacked = spawnSync(process.execPath, ['unpack.mjs'], { cwd: home, encoding: 'utf8' });
    assert.equal(unpacked.stderr, '');
    assert.deepEqual(readdirSync(home).sort(), [
      'fleet',
      'lib',
      'package.json',
      'parcel',
      'setup.sh',
      'unpack.mjs',
    ]);

    // As in the unit, except for the machine: its Node.js, a free port, its own server as the target.
    const [, script, ...words] = commandOf(fileIn(config, '.service').content);
    words.splice(words.indexOf('--listen-port'), 2);
    words[words.indexOf('--host') + 1] = '127.0.0.1';
    const env = { PATH: process.env.PATH, HOLDFAST_TOKEN: TOKEN };
    const drone = spawnDrone(t, words, { script, cwd: home, env });
    const { port } = new URL(await urlOf(drone));
    const ask = (/** @type {string} */ token) =>
      fetch(`http://127.0.0.1:${port}/`, { headers: { Authorization: `Bearer ${token}` } });
    assert.equal((await ask('another')).status, 401);
    const counts = await until(async () => {
      const { counts } = /** @type {any} */ (await (await ask(TOKEN)).json());
      return counts.open === 20 && counts.pings > 20 && counts;
    }, 'it has opened its streams');
    assert.equal(counts.target, 20);
    drone.child.kill('SIGTERM');
    assert.equal((await drone.exit).code, 0);
  });
});

/** @param {string} endpoint @param {import('node:test').TestContext} t @returns {Promise<string>} */
async function anImage(endpoint, t) {
  const { Region } = await import('../fleet/on/ec2/region.js');
  const region = new Region('us-east-1', { fleet: 'any', endpoint });
  t.after(() => region.close());
  return region.newestImage('t3.small');
}

/** @param {string} fleet */
function tagOf(fleet) {
  return [{ Key: 'holdfast-fleet', Value: fleet }];
}

/** @param {EC2Client} client @param {string} ImageId @param {{ Key: string, Value: string }[]} Tags @returns {Promise<string>} */
async function startOther(client, ImageId, Tags) {
  const { Instances = [] } = await client.send(
    new RunInstancesCommand({
      ...{ ImageId, MinCount: 1, MaxCount: 1, InstanceType: 't3.micro' },
      ...(Tags.length > 0 && { TagSpecifications: [{ ResourceType: 'instance', Tags }] }),
    }),
  );
  return Instances[0].InstanceId ?? '';
}

/** @param {EC2Client} client @param {string[]} ids */
async function statesOf(client, ids) {
  const { Reservations = [] } = await client.send(new DescribeInstancesCommand({ InstanceIds: ids }));
  return Reservations.flatMap(({ Instances = [] }) => Instances.map(({ State }) => State?.Name));
}

/** @param {EC2Client} client @param {string} fleet */
async function groupsOf(client, fleet) {
  const Filters = [{ Name: 'tag:holdfast-fleet', Values: [fleet] }];
  const { SecurityGroups = [] } = await client.send(new DescribeSecurityGroupsCommand({ Filters }));
  return SecurityGroups;
}
