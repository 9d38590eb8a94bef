/*
 * Holds what settings of the kernel were, and puts them back when its input ends: when the experiment says so, or when
 * it has died. Started by sysctls.js.
 */
import { writeFileSync } from 'node:fs';
import { pathOfSysctl } from '../../limits/kernel.js';

/** @type {Record<string, string>} */
const before = JSON.parse(process.argv[2]);

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => {}); // the end of the input is the only word

process.stdin.resume();
process.stdin.on('end', () => {
  for (const [name, value] of Object.entries(before)) {
    try {
      writeFileSync(`/${pathOfSysctl(name)}`, value);
    } catch (error) {
      process.exitCode = 1;
      process.stderr.write(`${name} could not be put back to ${value}: ${error}\n`);
    }
  }
});
process.stdout.write('ready\n');
