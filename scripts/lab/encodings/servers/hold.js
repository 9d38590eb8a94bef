/*
 * A Hold whose policy answers. Everything else is refused.
 */
import { Hold } from '../../../../index.js';
import { ANSWER, HOST, KEEP_ALIVE_MS, ready, startOf, TEXT } from './common.js';

const { port } = startOf();
const hold = new Hold({
  keepAliveTimeoutMs: KEEP_ALIVE_MS,
  policy: {
    decide: ({ target }) =>
      target === '/bench' ? { answer: { headers: TEXT, body: ANSWER } } : { refuse: 404 },
  },
});
await hold.listen(port, HOST);
ready();
