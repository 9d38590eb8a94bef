/*
 * Times all cases with the Node that runs it, and writes a JSON: `node program.js FILE [TURNS]`.
 */
import { writeFileSync } from 'node:fs';
import { GROUPS } from './groups.js';
import { timeAll } from './micro.js';

const [file, turns = '11'] = process.argv.slice(2);
const cases = [];
for (const one of GROUPS.flatMap((group) => group.cases)) cases.push('open' in one ? await one.open() : one);
const result = await timeAll(cases, Number(turns));
writeFileSync(file, JSON.stringify(result));
