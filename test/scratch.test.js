import assert from 'node:assert/strict';
import { test } from 'node:test';
import { get, rawClient, bodyOf } from './helpers/client.js';
import { startServer, run } from './helpers/server.js';
import { until } from './helpers/until.js';
test('takeover', { timeout: 60000 }, async (t) => {
  const server = await startServer(t, ['--workers', '2', '--anonymous', '--ping-interval', '500']);
  const clients = Array.from({ length: 200 }, () => rawClient(server.port, get()));
  for (const c of clients) await c.untilRead(/Welcome!/);
  await server.untilTotals(({ streams }) => streams === 200, '200');
  const next = run(t, process.execPath, ['server.js', '--takeover', '--port', '0', '--admin-port', 'auto', '--dashboard', 'off', '--refresh', '100', '--log-dir', server.folder, '--workers', '3', '--anonymous', '--ping-interval', '500']);
  try {
    const ex = await Promise.race([server.exit, next.exit]);
    console.log(ex);
    console.log(clients.filter((c) => c.closed).length, 'closed');
    const tot = await server.untilTotals(({ streams }) => streams === 200, '200 again');
    console.log(JSON.stringify(tot).slice(0, 600));
    const c = rawClient(server.port, get()); await c.untilRead(/Welcome!/); c.close();
    console.log(server.csv().map((r) => [r.elapsedMs, r.streams, r.opened, r.pings].join()).join(' '));
  } finally { console.log(server.output.stderr); console.log('---- next'); console.log(next.output.stderr); }
});
