/*
 * `Hold` in an application of one's own: what `decide` can do, what it is told, and how it ends.
 */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { describe, test } from 'node:test';
import { FORMATS, Hold } from 'holdfast';
import { native } from '../native/index.js';
import { Commands } from '../transport/commands.js';
import { chunksOf, get, rawClient } from './helpers/client.js';
import { listening, startHold } from './helpers/hold.js';
import { ROOT, run } from './helpers/server.js';
import { until } from './helpers/until.js';

const LONG_MS = 86_400_000;
const HELD = { skip: !native && 'the native core is not built' };

/**
 * Held streams by their target; '/a,b' listens to the channels a and b.
 * @param {import('node:test').TestContext} t
 * @param {import('holdfast').HoldOptions} [options]
 */
async function startHolding(t, options) {
  /** @type {Map<string, number>} */
  const ids = new Map();
  const { hold, closes } = startHold(t, {
    pingIntervalMs: LONG_MS,
    decide: ({ target }, id) => {
      ids.set(target, id);
      return { hold: FORMATS.text, channels: target.slice(1).split(',') };
    },
    ...options,
  });
  const port = await hold.listen(0, '127.0.0.1');
  const open = async (/** @type {string} */ target, version = '1.1') => {
    const client = rawClient(port, get({}, version).replace('/ HTTP', `${target} HTTP`));
    await client.untilRead(/Welcome!/);
    return client;
  };
  const idOf = (/** @type {string} */ target) => /** @type {number} */ (ids.get(target));
  return { hold, closes, ids, idOf, port, open };
}

/** @param {unknown} code @returns {(error: unknown) => boolean} whether it is one line with that code */
const withCode = (code) => (error) =>
  error instanceof Error && 'code' in error && error.code === code && !error.message.includes('\n');

describe('a Hold', { skip: !native && 'the native core is not built' }, () => {
  test('publishes to those who listen to a channel, and to no others', async (t) => {
    const { hold, open } = await startHolding(t, { shards: 2 });
    const [a, b, both, old] = [
      await open('/a'),
      await open('/b'),
      await open('/a,b'),
      await open('/b,', '1.0'),
    ];
    hold.publish('a', 'to a');
    hold.publish('b', 'to b');
    hold.publish('c', 'to nobody');
    hold.publish('b', '');
    hold.publish('b', 'x'.repeat(40_000));
    const long = 'x'.repeat(40_000);
    for (const client of [b, both]) await until(() => chunksOf(client.received).includes(long), 'a long one');
    await old.untilRead(/Welcome!to bx{40000}$/);
    await a.untilRead(/to a/);
    assert.deepEqual(chunksOf(a.received), ['Welcome!', 'to a']);
    assert.deepEqual(chunksOf(b.received), ['Welcome!', 'to b', long]);
    assert.deepEqual(chunksOf(both.received), ['Welcome!', 'to a', 'to b', long]);
    for (const client of [a, b, both, old]) client.close();
  });

  test('sends to one stream, subscribes and unsubscribes it, and ends it, by its id', async (t) => {
    const { hold, closes, idOf, open } = await startHolding(t);
    const [one, other] = [await open('/one'), await open('/other')];
    const id = idOf('/one');
    hold.send(id, '1');
    hold.publish('late', 'too early');
    hold.subscribe(id, 'late');
    hold.subscribe(id, 'late');
    hold.publish('late', '2');
    hold.unsubscribe(id, 'late');
    hold.unsubscribe(id, 'never');
    hold.publish('late', 'too late');
    hold.publish('one', '3');
    hold.end(id);
    await one.untilClosed();
    assert.deepEqual(chunksOf(one.received), ['Welcome!', '1', '2', '3', '']);
    await until(() => closes.length === 1, 'onClose');
    assert.deepEqual(closes, [{ id, reason: 'drain' }]);
    hold.send(idOf('/other'), 'last');
    await other.untilRead(/last/);
    assert.deepEqual(chunksOf(other.received), ['Welcome!', 'last']);
    other.close();
  });

  test('passes over in silence the ids of streams that are gone, and ids that it never gave', async (t) => {
    const { hold, closes, idOf, open } = await startHolding(t);
    const gone = await open('/gone');
    gone.close();
    await until(() => closes.length === 1, 'onClose');
    const here = await open('/here'); // most likely in the row of the first
    for (const id of [idOf('/gone'), 12_345, Number.MAX_SAFE_INTEGER]) {
      hold.send(id, 'to whom?');
      hold.subscribe(id, 'here');
      hold.unsubscribe(id, 'here');
      hold.end(id);
    }
    hold.publish('here', 'hello');
    await here.untilRead(/hello/);
    assert.deepEqual(chunksOf(here.received), ['Welcome!', 'hello']);
    here.close();
  });

  test('refuses what is no id, channel, port or period at once, and goes on', async (t) => {
    const { hold, open } = await startHolding(t);
    const client = await open('/news');
    const any = /** @type {any} */ (hold);
    for (const id of [-1, 1.5, Number.NaN, 2 ** 53, '1', undefined]) {
      assert.throws(() => any.send(id, 'x'), withCode('BAD_ARGUMENT'), String(id));
      assert.throws(() => any.subscribe(id, 'x'), withCode('BAD_ARGUMENT'));
      assert.throws(() => any.unsubscribe(id, 'x'), withCode('BAD_ARGUMENT'));
      assert.throws(() => any.end(id), withCode('BAD_ARGUMENT'));
    }
    assert.throws(() => any.publish(5, 'x'), withCode('BAD_ARGUMENT'));
    assert.throws(() => any.subscribe(1), withCode('BAD_ARGUMENT'));
    await assert.rejects(hold.listen(70_000), withCode('BAD_ARGUMENT'));
    assert.throws(() => hold.close(-1), withCode('BAD_ARGUMENT'));
    any.publish('news', 42);
    await client.untilRead(/42/);
    client.close();
  });

  test('shows decide the headers it asked for, joined where they came more than once', async (t) => {
    /** @type {import('holdfast').Head[]} */
    const heads = [];
    const { hold } = startHold(t, {
      headers: ['cookie', 'last-event-id'],
      decide: (head) => {
        heads.push(head);
        return { refuse: 404 };
      },
    });
    const port = await hold.listen(0, '127.0.0.1');
    const extra = 'Cookie: a=1\r\nX-Other: x\r\ncookie: b=ü\r\n';
    const client = rawClient(port);
    client.socket.write(Buffer.from(get().replace('\r\n\r\n', `\r\n${extra}\r\n`), 'latin1'));
    await client.untilClosed();
    assert.match(client.received, /^HTTP\/1\.1 404 /);
    assert.deepEqual(heads, [
      { method: 'GET', target: '/', version: '1.1', headers: { host: 'localhost', cookie: 'a=1, b=ü' } },
    ]);
  });

  test('welcomes in a format of the application, of any letters or of none', async (t) => {
    const formats = {
      '/hello': { ...FORMATS.events, welcome: () => 'data: grüß dich\n\n' },
      '/silent': { ...FORMATS.text, welcome: () => '' },
    };
    const { hold } = startHold(t, {
      pingIntervalMs: LONG_MS,
      decide: ({ target }) => ({
        hold: formats[/** @type {keyof typeof formats} */ (target)],
        channels: ['all'],
      }),
    });
    const port = await hold.listen(0, '127.0.0.1');
    const [hello, silent] = ['/hello', '/silent'].map((target) =>
      rawClient(port, get().replace('/ HTTP', `${target} HTTP`)),
    );
    for (const client of [hello, silent]) await client.untilRead(/\r\n\r\n/);
    hold.publish('all', 'x');
    for (const client of [hello, silent]) await client.untilRead(/x\s*$/);
    const welcome = Buffer.from('data: grüß dich\n\n').toString('latin1');
    assert.deepEqual(chunksOf(hello.received), [welcome, 'data: x\n\n']);
    assert.deepEqual(chunksOf(silent.received), ['x']);
    for (const client of [hello, silent]) client.close();
  });

  test('answers a HEAD of what is held with the head alone', async (t) => {
    const { port, closes } = await startHolding(t);
    const client = rawClient(port, get().replace('GET', 'HEAD'));
    await client.untilClosed();
    assert.match(client.received, /^HTTP\/1\.1 200 OK\r\n[\s\S]*\r\n\r\n$/);
    assert.equal(closes.length, 0);
  });

  test('passes a connection on untouched: a body of megabytes, other requests after it, an adoption', async (t) => {
    const server = createServer(async (request, response) => {
      if (request.method === 'POST') return request.pipe(response);
      response.write('first ');
      await hold.adopt(response, { channels: ['news'] });
      hold.publish('news', 'published');
    });
    const { hold, closes } = startHold(t, {
      server,
      pingIntervalMs: LONG_MS,
      decide: ({ target }) => (target === '/held' ? { hold: FORMATS.text } : { pass: true }),
    });
    const port = await hold.listen(0, '127.0.0.1');
    const body = 'x'.repeat(3_000_000);
    const post = `POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n`;
    const client = rawClient(port);
    for (let count = 0; count < 2; count++) {
      client.received = '';
      client.send(post + body);
      await until(() => client.received.endsWith('\r\n0\r\n\r\n'), 'the end of the echo');
      assert.ok(chunksOf(client.received).join('') === body);
    }
    client.received = '';
    client.send(get());
    await client.untilRead(/published/);
    assert.deepEqual(chunksOf(client.received), ['first ', 'published']);
    client.close();
    await until(() => closes.length === 1, 'the stream that was adopted has ended');
  });

  test('refuses what is to be passed on with 404 where there is nobody to pass it to', async (t) => {
    const { hold } = startHold(t);
    const client = rawClient(await hold.listen(0, '127.0.0.1'), get());
    await client.untilClosed();
    assert.match(client.received, /^HTTP\/1\.1 404 /);
  });

  test('answers with a whole response where decide has one', async (t) => {
    const whole = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n\xe9!';
    const { hold } = startHold(t, { decide: () => ({ answer: () => whole }) });
    const client = rawClient(await hold.listen(0, '127.0.0.1'), get());
    await client.untilClosed();
    assert.equal(client.received, whole);
  });

  test('refuses with 503 where decide throws, or decides nothing that can be done, and reports it', async (t) => {
    /** @type {unknown[]} */
    const errors = [];
    const bad = {
      '/throw': () => {
        throw new Error('a fault of the application');
      },
      '/nothing': () => undefined,
      '/promise': async () => ({ hold: FORMATS.text }),
      '/status': () => ({ refuse: 500 }),
      '/format': () => ({ hold: 'text' }),
      '/channels': () => ({ hold: FORMATS.text, channels: ['a', 5] }),
      '/many': () => ({ hold: FORMATS.text, channels: Array(1025).fill('a') }),
      '/gap': () => ({ hold: FORMATS.text, channels: Object.assign(['a'], { 2: 'b' }) }),
      '/welcome': () => ({ hold: { ...FORMATS.text, welcome: () => assert.fail('no welcome') } }),
    };
    const targets = Object.keys(bad);
    const { hold } = startHold(t, {
      pingIntervalMs: LONG_MS,
      onError: (error) => errors.push(error),
      decide: ({ target }) => (target === '/' ? { hold: FORMATS.text } : /** @type {any} */ (bad)[target]()),
    });
    const port = await hold.listen(0, '127.0.0.1');
    const clients = targets.flatMap((target) => [
      rawClient(port, get().replace('/ HTTP', `${target} HTTP`)),
      rawClient(port, get()),
    ]);
    for (const [i, client] of clients.entries()) {
      await client.untilRead(i % 2 === 0 ? /^HTTP\/1\.1 503 / : /Welcome!/);
      client.close();
    }
    assert.equal(errors.length, targets.length);
    assert.ok(errors.some((error) => /a fault of the application/.test(String(error))));
  });

  test('costs no other client a thing where the answer of one is no text, or throws', async (t) => {
    /** @type {any[]} */
    const errors = [];
    const bad = {
      '/buffer': () => Buffer.from('HTTP/1.1 200 OK\r\n\r\n'),
      '/throw': () => assert.fail('no answer'),
    };
    const { hold } = startHold(t, {
      pingIntervalMs: LONG_MS,
      onError: (error) => errors.push(error),
      decide: ({ target }) => {
        const answer = /** @type {any} */ (bad)[target];
        if (answer) return { answer };
        // What was said in the same batch still leaves.
        hold.publish('others', 'hello');
        return { hold: FORMATS.text, channels: ['others'] };
      },
    });
    const port = await hold.listen(0, '127.0.0.1');
    const targets = Array.from({ length: 40 }, (_, i) => ['/buffer', '/', '/throw', '/'][i % 4]);
    const clients = targets.map((target) => rawClient(port, get().replace('/ HTTP', `${target} HTTP`)));
    for (const [i, client] of clients.entries()) {
      await client.untilRead(i % 2 === 0 ? /^HTTP\/1\.1 503 / : /Welcome!/);
    }
    hold.publish('others', 'last');
    for (const [i, client] of clients.entries()) {
      if (i % 2 === 1) await client.untilRead(/last/);
      client.close();
    }
    assert.equal(errors.length, 20);
    const refused = errors.find(({ code }) => code === 'BAD_ARGUMENT');
    assert.match(refused.message, /^an answer is a whole response as a text of Latin-1, not an object$/);
  });

  test('opens a stream with 1024 channels, and refuses more with what to do instead', async (t) => {
    /** @type {any[]} */
    const errors = [];
    const { hold } = startHold(t, {
      pingIntervalMs: LONG_MS,
      onError: (error) => errors.push(error),
      decide: ({ target }) => ({
        hold: FORMATS.text,
        channels: Array.from({ length: Number(target.slice(1)) }, (_, i) => `${i}`),
      }),
    });
    const port = await hold.listen(0, '127.0.0.1');
    const [most, tooMany, far] = [1024, 1025, 65_536 + 40].map((count) =>
      rawClient(port, get().replace('/ HTTP', `/${count} HTTP`)),
    );
    await most.untilRead(/Welcome!/);
    hold.publish('1023', 'to the last');
    await most.untilRead(/to the last/);
    for (const client of [tooMany, far]) await client.untilRead(/^HTTP\/1\.1 503 /);
    for (const client of [most, tooMany, far]) client.close();
    const [line] = errors.map(({ message }) => message).sort();
    assert.equal(line, 'a stream is opened with 1024 channels at most, not 1025: subscribe it to the rest');
    assert.ok(errors.every(withCode('BAD_ARGUMENT')));
  });

  test('warns of a decide and an onClose that throw, where there is no onError, and goes on', async (t) => {
    /** @type {Error[]} */
    const warnings = [];
    const onWarning = (/** @type {Error} */ warning) => warnings.push(warning);
    process.on('warning', onWarning);
    t.after(() => process.off('warning', onWarning));
    let ends = 0;
    const { hold } = startHold(t, {
      pingIntervalMs: LONG_MS,
      decide: ({ target }) => {
        if (target !== '/') throw new Error('in decide');
        return { hold: FORMATS.text };
      },
      onClose: () => {
        ends++;
        throw new Error('in onClose');
      },
    });
    const port = await hold.listen(0, '127.0.0.1');
    const refused = rawClient(port, get().replace('/ HTTP', '/other HTTP'));
    await refused.untilClosed();
    for (let i = 0; i < 3; i++) {
      const client = rawClient(port, get());
      await client.untilRead(/Welcome!/);
      client.close();
    }
    await until(() => ends === 3, 'all ends are told');
    await until(() => warnings.length === 4, 'warnings');
    assert.match(warnings[0].message, /a callback of Hold threw: Error: in decide\n/);
    assert.match(warnings[1].message, /in onClose/);
  });

  test('past its capacity refuses with 503, and says that the stream did not come about', async (t) => {
    const { closes, idOf, open, port } = await startHolding(t, { capacity: 1 });
    const first = await open('/first');
    const second = rawClient(port, get().replace('/ HTTP', '/second HTTP'));
    await second.untilClosed();
    assert.match(second.received, /^HTTP\/1\.1 503 /);
    assert.deepEqual(closes, [{ id: idOf('/second'), reason: 'over-capacity' }]);
    first.close();
  });

  test('listens on one port, and says which is taken', async (t) => {
    const { hold } = startHold(t);
    const taken = await listening(t, createServer());
    await assert.rejects(hold.listen(taken, '127.0.0.1'), { code: 'EADDRINUSE', syscall: 'listen' });
    await assert.rejects(
      hold.listen(0, 'name.invalid'),
      (error) => error instanceof Error && 'code' in error,
    );
    await hold.listen(0, 'localhost');
    await assert.rejects(hold.listen(0), withCode('LISTENING'));
  });

  test('is closed once, tells whoever asks, and does nothing from then on', async (t) => {
    const { hold, closes, idOf, open, port } = await startHolding(t);
    const client = await open('/news');
    const closed = hold.close(50);
    await Promise.all([closed, hold.close(), hold.close()]);
    await client.untilClosed();
    assert.deepEqual(closes, [{ id: idOf('/news'), reason: 'drain' }]);
    hold.publish('news', 'to nobody');
    hold.send(idOf('/news'), 'to nobody');
    await hold.close();
    await assert.rejects(hold.listen(0), withCode('CLOSED'));
    const socket = connect(port, '127.0.0.1');
    await assert.rejects(new Promise((resolve, reject) => socket.on('connect', resolve).on('error', reject)));
    assert.equal(hold.take().streams, 0);
  });

  test('that was closed before it listened listens no more', async () => {
    const hold = new Hold();
    const listens = assert.rejects(hold.listen(0, 'localhost'), withCode('CLOSED'));
    await hold.close();
    await listens;
  });

  /** @type {[Record<string, unknown>, RegExp][]} */
  const BAD = [
    [{ shards: 0 }, /^shards got 0: expected a whole number from 1 to 255$/],
    ...[256, 300, -1, 1.5, Number.NaN, '2', null].map(
      (shards) => /** @type {[Record<string, unknown>, RegExp]} */ ([{ shards }, /^shards got .*: expected/]),
    ),
    [{ pingIntervalMs: 0 }, /^pingIntervalMs got 0: expected/],
    [{ pingIntervalMs: Number.POSITIVE_INFINITY }, /^pingIntervalMs got Infinity: expected/],
    [{ capacity: -1 }, /^capacity got -1: expected/],
    [{ capacity: 2 ** 32 }, /^capacity got 4294967296: expected/],
    [{ connectionLimit: 0 }, /^connectionLimit got 0/],
    [
      { connectionLimit: 2 ** 21 + 1 },
      /^connectionLimit got 2097153: expected a whole number from 1 to 2097152$/,
    ],
    [{ maxHeadBytes: 2 ** 31 }, /^maxHeadBytes got/],
    [{ headTimeoutMs: 0 }, /^headTimeoutMs got 0/],
    [{ maxBacklogBytes: -1 }, /^maxBacklogBytes got -1/],
    [{ seat: -1 }, /^seat got -1/],
    [{ seats: 0.5 }, /^seats got 0.5/],
    [{ nagle: 'no' }, /^nagle got 'no': expected true or false$/],
    [{ ping: 'ping' }, /^ping got 'ping': expected an object of two texts/],
    [{ ping: { text: 'ping' } }, /^ping got an object: expected/],
    [{ headers: 'cookie' }, /^headers got 'cookie': expected an array/],
    [{ headers: ['Cookie'] }, /^headers got Cookie: expected .* in lower case$/],
    [{ decide: {} }, /^decide got an object: expected a function$/],
    [{ onClose: 1 }, /^onClose got 1: expected a function$/],
    [{ server: () => {} }, /^server got a function: expected a server of node:http/],
    [{ pingInterval: 1000 }, /^there is no option 'pingInterval': there are decide, /],
    [{ constructor: 1 }, /^there is no option 'constructor'/],
  ];
  for (const [options, line] of BAD) {
    const [[name, value]] = Object.entries(options);
    test(`is not made with ${name} ${JSON.stringify(value) ?? typeof value} (${String(value)})`, () => {
      assert.throws(
        () => new Hold(/** @type {any} */ (options)),
        (error) => withCode('BAD_OPTION')(error) && line.test(/** @type {Error} */ (error).message),
      );
    });
  }

  test('takes an option that is undefined as one that was not given', async () => {
    await new Hold({ shards: undefined, capacity: undefined, onClose: undefined }).close();
  });

  for (const mode of ['close', 'exit', 'worker', 'cluster']) {
    test(`holds and adopts in a program that ends by '${mode}', and ends well`, async (t) => {
      const program = run(t, process.execPath, ['test/fixtures/embedded.js', mode]);
      const { output, child } = program;
      const port = await until(
        () => Number(/^port (\d+)/m.exec(output.stdout)?.[1]),
        () => `a port in ${output.stderr}`,
      );
      const held = rawClient(port, get());
      await held.untilRead(/Welcome!/);
      const adopted = rawClient(port, get().replace('/ HTTP', '/adopted HTTP'));
      for (const client of [held, adopted]) await client.untilRead(/published/);
      assert.deepEqual(chunksOf(adopted.received), ['adopted ', 'published']);
      // Nothing but the Hold keeps it alive: it can be seen only in what it does.
      assert.equal(child.exitCode, null);
      child.kill('SIGUSR2');
      assert.deepEqual(await program.exit, { code: 0, signal: null });
      for (const client of [held, adopted]) await client.untilClosed();
      assert.equal(output.stderr, '');
      if (mode === 'worker') assert.match(output.stdout, /ended with 1/);
      if (mode === 'cluster') assert.match(output.stdout, /left with 0/);
      if (mode !== 'exit' && mode !== 'worker') assert.match(output.stdout, /closed/);
    });
  }

  test('that never listened keeps no program alive', async (t) => {
    const program = run(t, process.execPath, ['test/fixtures/embedded.js', 'idle']);
    assert.deepEqual(await program.exit, { code: 0, signal: null });
    assert.equal(program.output.stderr, '');
  });

  test('serves the application of the README', async (t) => {
    const program = run(t, process.execPath, ['test/fixtures/own.js'], {
      env: { ...process.env, PORT: '0' },
    });
    const port = await until(
      () => Number(/port: (\d+)/.exec(program.output.stdout)?.[1]),
      () => `a port in ${program.output.stderr}`,
    );
    const clients = [1, 2].map(() => rawClient(port, get().replace('/ HTTP', '/news HTTP')));
    for (const client of clients) await client.untilRead(/event: welcome\ndata: Hello!\n\n/);
    const publish = () =>
      fetch(`http://127.0.0.1:${port}/news`, {
        method: 'POST',
        body: 'It works.',
        headers: { 'Content-Type': 'text/plain' },
      });
    // A welcome is here before its stream listens.
    await until(async () => {
      assert.equal((await publish()).status, 202);
      return clients.every(({ received }) => /data: It works\.\n\n/.test(received));
    }, 'the news');
    program.child.kill('SIGTERM');
    assert.deepEqual(await program.exit, { code: 0, signal: null });
    for (const client of clients) await client.untilClosed();
    assert.equal(program.output.stderr, '');
  });
});

describe('heads that are always held', HELD, () => {
  /**
   * @param {import('node:test').TestContext} t @param {boolean} always
   * @param {import('holdfast').HoldOptions} [options]
   */
  async function startCounting(t, always, options) {
    /** @type {string[]} */
    const asked = [];
    const { hold, closes } = startHold(t, {
      pingIntervalMs: LONG_MS,
      decide: ({ target }) => {
        asked.push(target);
        return { hold: FORMATS.events, channels: ['a'], always };
      },
      ...options,
    });
    const port = await hold.listen(0, '127.0.0.1');
    /** @type {ReturnType<typeof rawClient>[]} */
    const clients = [];
    const open = async (/** @type {number} */ count, target = '/') => {
      const more = Array.from({ length: count }, () =>
        rawClient(port, get().replace('/ HTTP', `${target} HTTP`)),
      );
      clients.push(...more);
      for (const client of more) await client.untilRead(/\r\n\r\n/);
      return more;
    };
    return { hold, closes, asked, clients, open };
  }

  test('are not asked about one by one, and are streams like all others', async (t) => {
    const { hold, asked, clients, open } = await startCounting(t, true, { shards: 2 });
    await until(async () => {
      await open(40);
      return asked.length < clients.length;
    }, 'some were not asked about');
    const [other] = await open(1, '/other');
    assert.equal(asked.at(-1), '/other');
    assert.equal(hold.take().streams, clients.length);
    hold.publish('a', 'to all');
    for (const client of clients) await client.untilRead(/data: to all\n\n/);
    const welcomes = new Set(clients.map(({ received }) => /retry: (\d+)/.exec(received)?.[1]));
    assert.ok(welcomes.size > 4, `they come back at ${welcomes.size} times`);
    const seconds = clients.map(({ received }) => Date.parse(/^Date: (.+)\r$/m.exec(received)?.[1] ?? ''));
    assert.ok(seconds.every((ms) => Math.abs(Date.now() - ms) < LONG_MS));
    assert.ok(other.received.startsWith('HTTP/1.1 200 OK'));
  });

  test('are asked about one by one where it is not said that it is always so', async (t) => {
    const { asked, open } = await startCounting(t, false);
    for (let i = 0; i < 3; i++) await open(50);
    assert.equal(asked.length, 150);
  });

  test('are refused where there is no room, and held again where there is', async (t) => {
    const { hold, closes, clients, open } = await startCounting(t, true, {
      shards: 1,
      capacity: 100,
      connectionLimit: 400,
    });
    await open(60);
    await open(60);
    const isHeld = (/** @type {typeof clients[number]} */ { received }) =>
      received.startsWith('HTTP/1.1 200');
    assert.equal(clients.filter(isHeld).length, 100);
    assert.equal(clients.filter(({ received }) => received.startsWith('HTTP/1.1 503')).length, 20);
    assert.equal(closes.filter(({ reason }) => reason === 'over-capacity').length, 20);
    for (const client of clients.filter(isHeld).slice(0, 30)) client.close();
    await until(() => hold.take().streams === 70, '30 have gone');
    assert.ok((await open(30)).every(isHeld));
  });
});

test('without the native core a Hold says so on one line', async (t) => {
  const program = run(
    t,
    process.execPath,
    [
      '--input-type=module',
      '--eval',
      "import { Hold } from 'holdfast'; try { new Hold() } catch ({ code, message }) { console.log(code, message) }",
    ],
    { cwd: ROOT, env: { ...process.env, HOLDFAST_NATIVE: 'off' } },
  );
  await program.exit;
  assert.equal(program.output.stdout, 'NO_NATIVE the native core is not here: HOLDFAST_NATIVE is off\n');
});

describe('the buffer of commands', () => {
  test('grows as it must, and keeps what stands in it', () => {
    const commands = new Commands();
    const long = 'ü'.repeat(10_000);
    commands.close(7);
    commands.publish('news', { text: long, events: '' });
    const records = Buffer.from(commands.take());
    assert.equal(records.length, 9 + 1 + 4 + 4 + 4 + 20_000 + 4);
    assert.deepEqual([records[0], records.readDoubleLE(1), records[9]], [5, 7, 8]);
    assert.equal(records.toString('utf8', 10 + 8 + 4, records.length - 4), long);
    assert.equal(commands.take().length, 0);
  });

  test('keeps nothing of a record that could not be written, and all of those before it', () => {
    const commands = new Commands();
    const opening = { format: 0, bytes: Buffer.from('head'), channels: ['a'] };
    commands.hold(7, opening);
    const before = commands.size;
    assert.throws(() => commands.refuse(8, /** @type {any} */ (Buffer.from('no text'))), TypeError);
    commands.undo();
    assert.throws(() => commands.hold(8, { ...opening, channels: Array(70_000).fill('b') }), RangeError);
    commands.undo();
    assert.equal(commands.size, before);
    commands.hold(8, opening);
    const records = Buffer.from(commands.take());
    assert.deepEqual(
      records.subarray(before).subarray(0, -8),
      records.subarray(0, before - 8),
      'how it begins is said again',
    );
    commands.undo();
    assert.equal(commands.take().length, 0);
  });

  test('is let go of where it grew large', () => {
    const commands = new Commands();
    commands.send(1, { text: 'x'.repeat(2_000_000), events: '' });
    assert.ok(commands.take().length > 2_000_000);
    assert.ok(commands.buffer.length < 10_000);
    commands.refuse(1, 'größer');
    assert.equal(Buffer.from(commands.take()).toString('latin1', 13), 'größer');
  });
});

test('what was published before close reaches every stream, and then it ends properly', HELD, async (t) => {
  const { hold } = startHold(t, {
    pingIntervalMs: LONG_MS,
    decide: () => ({ hold: FORMATS.text, channels: ['all'] }),
  });
  const port = await hold.listen(0, '127.0.0.1');
  const clients = Array.from({ length: 300 }, () => rawClient(port, get()));
  await until(() => hold.take().streams === 300, '300 streams');
  for (let i = 0; i < 60; i++) hold.publish('all', `bye ${i} `.padEnd(1000, '.'));
  await hold.close(0);
  await until(() => clients.every(({ closed }) => closed), 'all have ended');
  for (const { received } of clients) {
    assert.equal(received.match(/bye \d+ /g)?.length, 60);
    assert.match(received, /\r\n0\r\n\r\n$/);
  }
});

test(
  'short heads are remembered, long ones are not: they would take more memory than they save time',
  HELD,
  async (t) => {
    const { hold } = startHold(t, { decide: () => ({ refuse: 404 }) });
    const port = await hold.listen(0, '127.0.0.1');
    const ask = async (/** @type {string} */ target) => {
      const client = rawClient(port, get().replace('/ HTTP', `${target} HTTP`));
      await client.untilRead(/^HTTP\/1\.1 404 /);
      client.close();
    };
    await ask('/short');
    await ask('/short');
    await ask(`/${'x'.repeat(2000)}`);
    assert.equal(/** @type {any} */ (hold).heads.known.size, 1);
  },
);
