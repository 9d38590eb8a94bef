/*
 * What `import { Hold } from 'holdfast'` is in TypeScript. `npm run types` checks that index.d.ts agrees with transport/,
 * in fixtures/types/same.ts.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ROOT, run } from './helpers/server.js';

test('a strict program that uses the whole API compiles, and every misuse is an error', async (t) => {
  const tsc = run(t, 'npx', ['tsc', '-p', 'test/fixtures/types'], { cwd: ROOT });
  const { code } = await tsc.exit;
  assert.equal(code, 0, tsc.output.stdout);
});
