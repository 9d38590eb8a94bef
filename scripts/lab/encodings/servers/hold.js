/*
 * A Hold whose policy answers. Everything else is refused. Takes our package first.
 */
import { ANSWER, HOST, KEEP_ALIVE_MS, ready, startOf, TEXT } from './common.js';

const { port } = startOf();
const { Hold } = await import(process.argv[2]);
const hold = new Hold({
  keepAliveTimeoutMs: KEEP_ALIVE_MS,
  policy: {
    /** @param {{ target: string }} head */
    decide: ({ target }) =>
      target === '/bench' ? { answer: { headers: TEXT, body: ANSWER } } : { refuse: 404 },
  },
});
await hold.listen(port, HOST);
ready();
