/*
 * A reporter that lists the tests that were skipped, and why. With HOLDFAST_SKIPS=fail, as in CI, a skip fails the run
 * unless the table expects it: a test that nobody runs finds nothing. The files that failed, for either reason, are listed in the
 * file TEST_FAILURES.
 */
import { writeFileSync } from 'node:fs';
import { basename } from 'node:path';

/** What a machine may be unable to provide even if every tool is installed. */
const EXPECTED = [
  /^systemd is /, // containers have none
  /^no (network|mount) namespace here|^unshare is not allowed here/, // the container may not make one
  /^no packets can be dropped here/, // the kernel has no netfilter
  /^no disk can be mounted here/,
  /no other address/, // loopback only
  /^IPv6 is not available/, // turned off by the kernel or the container
  /^sysctls can't be written here|^network settings are read-only here/, // /proc/sys is read-only in most containers
  /^it needs Linux 6\.1/,
  /^the limits of this machine|^it is raised already/, // somebody has tuned it
  /^others may not read this folder/,
  /^root may read everything/,
  /^this Node has no URLPattern/, // CI also runs one that has
];

/** @param {string} reason @returns {boolean} */
export function isExpected(reason) {
  return EXPECTED.some((pattern) => pattern.test(reason));
}

/** @param {AsyncIterable<{ type: string, data: any }>} events of node:test */
export default async function* skips(events) {
  /** @type {{ line: string, expected: boolean }[]} */
  const found = [];
  /** @type {Set<string>} */
  const failures = new Set();
  for await (const { type, data } of events) {
    if (type === 'test:fail' && data.file) failures.add(data.file);
    if ((type !== 'test:pass' && type !== 'test:fail') || data.skip === undefined) continue;
    const reason = String(data.skip);
    const where = data.file ? `${basename(data.file)}: ` : '';
    found.push({ line: `${where}${data.name}: ${reason}`, expected: isExpected(reason) });
    if (data.file && !isExpected(reason)) failures.add(data.file);
  }
  if (process.env.TEST_FAILURES) writeFileSync(process.env.TEST_FAILURES, [...failures].join('\n'));
  if (found.length > 0)
    yield `\n${found.length} skipped:\n${found.map(({ line }) => `  ${line}\n`).join('')}`;
  const unexpected = found.filter(({ expected }) => !expected);
  if (process.env.HOLDFAST_SKIPS !== 'fail' || unexpected.length === 0) return;
  process.exitCode = 1;
  const lines = unexpected.map(({ line }) => `  ${line}\n`).join('');
  yield `\n${unexpected.length} skips are not expected (test/helpers/skips.js):\n${lines}`;
}
