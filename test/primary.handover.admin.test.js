/*
 * The admin port while another server takes over.
 */
import assert from 'node:assert/strict';
import { Agent, request } from 'node:http';
import { test } from 'node:test';
import { native } from '../native/index.js';
import { assertAllGot, openStreams, startNew, startOld } from './helpers/handover.js';

const skip = native ? false : 'the native core is not built';

/** @param {number} port @param {Agent} agent @param {string} body @returns {Promise<string>} status and text, or why there is none */
const publish = (port, agent, body) =>
  new Promise((resolve) => {
    const posted = request(
      { host: '127.0.0.1', port, agent, method: 'POST', path: '/publish?channel=news' },
      (response) => {
        let text = '';
        response.on('data', (data) => {
          text += data;
        });
        response.on('close', () => resolve(`${response.statusCode} ${text.trim()}`));
      },
    );
    posted.on('error', (/** @type {NodeJS.ErrnoException} */ error) => resolve(error.code ?? error.message));
    posted.end(body);
  });

test('no publication is refused on connections to the admin port that were open before', {
  skip,
}, async (t) => {
  const old = await startOld(t);
  const { ofChannel } = await openStreams(t, old.port, 20);
  const agent = new Agent({ keepAlive: true, maxSockets: 2 });
  t.after(() => agent.destroy());
  const next = startNew(t, old);
  let isOver = false;
  void next.listening.then(() => {
    isOver = true;
  });
  /** @type {string[]} */
  const sent = [];
  for (let i = 0; !isOver || i < 10; i++) {
    const answer = await publish(old.adminPort, agent, `${i}`);
    if (/^E[A-Z]+$/.test(answer)) continue; // in between, nobody listens
    assert.equal(answer, '202 {"listeners":10}');
    sent.push(`${i}`);
  }
  assert.ok(sent.length > 10);
  await assertAllGot(ofChannel, ['Welcome!', ...sent]);
});
