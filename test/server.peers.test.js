/*
 * Clients that stop reading, and clients that disappear.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { makeNamespace } from './helpers/namespace.js';
import { run, startServer, TRANSPORTS } from './helpers/server.js';
import { until } from './helpers/until.js';

const STREAMS = '5';
const SMALL_BUFFER = '4096 4096 4096';
const SMALL_BUFFERS = { 'net.ipv4.tcp_wmem': SMALL_BUFFER, 'net.ipv4.tcp_rmem': SMALL_BUFFER };
/** About three seconds of retransmissions instead of a quarter of an hour. The hold transport has its own limit. */
const FEW_RETRIES = { 'net.ipv4.tcp_retries2': '3' };

const QUICKLY_SLOW = ['--ping-interval', '10', '--max-backlog', '2000'];

/**
 * Opens streams inside a namespace, to a server there, and waits until all are open.
 * @param {import('node:test').TestContext} t @param {string[]} prefix @param {number} port @param {string[]} mode
 */
async function hold(t, [command, ...words], port, ...mode) {
  const client = run(t, command, [
    ...words,
    process.execPath,
    'test/fixtures/holder.js',
    String(port),
    STREAMS,
    ...mode,
  ]);
  await until(() => client.output.stdout, 'all streams are open');
  return client;
}

for (const transport of TRANSPORTS) {
  const args = ['--transport', transport];

  describe(`peers of the ${transport} transport`, () => {
    test('a client that stops reading is dropped as slow once its backlog is too large', async (t) => {
      const { problem, prefix } = makeNamespace(t, SMALL_BUFFERS);
      if (problem) return t.skip(problem);
      const server = await startServer(t, [...args, ...QUICKLY_SLOW], { prefix });
      await hold(t, prefix, server.port, 'read');
      await hold(t, prefix, server.port);
      const row = await until(
        () => server.csv().find(({ closedSlow }) => closedSlow === STREAMS),
        'the slow are dropped',
      );
      assert.equal(row.streams, STREAMS, 'those that read stay');
      const backlogs = server.csv().map(({ backlogBytes }) => Number(backlogBytes));
      assert.ok(Math.max(...backlogs) > 0, 'the backlog was seen');
    });

    test('a client whose process is stopped is also dropped as slow', async (t) => {
      const { problem, prefix } = makeNamespace(t, SMALL_BUFFERS);
      if (problem) return t.skip(problem);
      const server = await startServer(t, [...args, ...QUICKLY_SLOW], { prefix });
      const client = await hold(t, prefix, server.port, 'read');
      process.kill(-client.pid, 'SIGSTOP');
      await until(
        () => server.csv().find(({ closedSlow }) => closedSlow === STREAMS),
        'the stopped are dropped',
      );
    });

    test('a peer that disappears without closing is dropped as dead when pings to it fail', async (t) => {
      const { problem, prefix, run: inside } = makeNamespace(t, transport === 'http' ? FEW_RETRIES : {});
      if (problem) return t.skip(problem);
      const server = await startServer(t, [...args, '--ping-interval', '100'], { prefix });
      await hold(t, prefix, server.port, 'read');
      const rule = `-A INPUT -p tcp --sport ${server.port} -j DROP`;
      const refused = inside('iptables', ...rule.split(' '));
      if (refused) return t.skip(`no packets can be dropped here: ${refused}`);
      const row = await until(
        () => server.csv().find(({ closedDeadPeer }) => closedDeadPeer === STREAMS),
        'the dead are dropped',
      );
      assert.equal(row.streams, '0');
    });
  });
}
