/*
 * Knows the old values of kernel settings and restores them when its input ends: when the experiment asks for it, or when
 * the experiment has died. Started by sysctls.js.
 */
import { writeFileSync } from 'node:fs';
import { pathOfSysctl } from '../../limits/kernel.js';

/** @type {Record<string, string>} */
const before = JSON.parse(process.argv[2]);

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => {}); // only the end of its input ends it

process.stdin.resume();
process.stdin.on('end', () => {
  for (const [name, value] of Object.entries(before)) {
    try {
      writeFileSync(`/${pathOfSysctl(name)}`, value);
    } catch (error) {
      process.exitCode = 1;
      process.stderr.write(`can't restore ${name} to ${value}: ${error}\n`);
    }
  }
});
process.stdout.write('ready\n');
