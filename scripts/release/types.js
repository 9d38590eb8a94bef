/*
 * The types as a user's compiler sees them: the unpacked package, imported by an ES module and required by a CommonJS one.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const USE = `
const hold = new Hold({ maxQueueBytes: 1_000_000 });
const hub = new Hub({ hold, anonymous: true });
hold.publish('news', 'hello') satisfies Promise<number>;
hold.isNative satisfies boolean;
hub.publish({ topic: 'news', data: 'hello' });
// @ts-expect-error a message is a text, bytes or an object
hold.publish('news', 1);
`;
const FILES = {
  'esm.mts': `import { Hold, Hub } from 'holdfast';\n${USE}`,
  'cjs.cts': `import holdfast = require('holdfast');\nconst { Hold, Hub } = holdfast;\n${USE}`,
};
const SETTINGS = {
  compilerOptions: {
    target: 'es2023',
    module: 'nodenext',
    strict: true,
    exactOptionalPropertyTypes: true,
    noEmit: true,
    types: ['node'],
  },
  files: Object.keys(FILES),
};

/**
 * @param {string} root of the repository, whose compiler is used
 * @param {string} consumer a folder in which holdfast is installed, in node_modules
 * @returns {string[]} what tsc says
 */
export function typeProblems(root, consumer) {
  for (const [name, text] of Object.entries(FILES)) writeFileSync(join(consumer, name), text);
  writeFileSync(join(consumer, 'tsconfig.json'), JSON.stringify(SETTINGS));
  linkTypesOfNode(root, consumer);
  const tsc = join(root, 'node_modules/typescript/bin/tsc');
  const { status, stdout } = spawnSync(process.execPath, [tsc, '-p', consumer], {
    cwd: consumer,
    encoding: 'utf8',
  });
  return status === 0 ? [] : stdout.trim().split('\n');
}

/** @param {string} root @param {string} consumer */
function linkTypesOfNode(root, consumer) {
  mkdirSync(join(consumer, 'node_modules/@types'), { recursive: true });
  for (const name of ['@types/node', 'undici-types'])
    symlinkSync(join(root, 'node_modules', name), join(consumer, 'node_modules', name));
}
