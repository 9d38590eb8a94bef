/*
 * What `import { Hold } from 'holdfast'` is to a program in TypeScript. That index.d.ts is true of
 * transport/hold.js is seen to by `npm run types`, in fixtures/types/same.ts.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ROOT, run } from './helpers/server.js';

test('a strict program compiles with all there is, and each of its misuses does not', async (t) => {
  const tsc = run(t, 'npx', ['tsc', '-p', 'test/fixtures/types'], { cwd: ROOT });
  const { code } = await tsc.exit;
  assert.equal(code, 0, tsc.output.stdout);
});
