/*
 * What a finding looks like: one shape for all limits, and a helper for sysctls that must have a minimum.
 */

export const SYSCTL_FILE = '/etc/sysctl.d/90-holdfast.conf';
export const LIMITS_FILE = '/etc/security/limits.d/90-holdfast.conf';

/** @typedef {import('./kernel.js').Machine} Machine */
/** @typedef {import('./needs.js').Needs} Needs */
/** @typedef {(machine: Machine, needs: Needs) => Finding | null} Row null if this machine has no such limit */

/**
 * @typedef {object} Finding
 * @property {string} name
 * @property {'count' | 'bytes' | 'percent'} unit percent is of one core
 * @property {number | string} now
 * @property {number | string} needed 'any' if it doesn't matter
 * @property {string} why one short sentence
 * @property {boolean} isMet
 * @property {boolean} isForbidding whether the run is impossible until it is met: streams would be refused, cut, or never
 *   opened. If it only gets worse (late ticks, repeated handshakes), the finding is advice
 * @property {{ file: string, line: string }} fix what to write into which file; `file` is '' if no file helps. `line` may have two
 */

/** @param {Machine} machine @param {string} name of a sysctl @returns {number[] | null} */
export function numbersOf({ sysctls }, name) {
  return sysctls[name] === undefined ? null : sysctls[name].split(' ').map(Number);
}

/** @param {Omit<Finding, 'isForbidding' | 'unit'> & { unit?: Finding['unit'], forbids?: boolean }} parts @returns {Finding} */
export function finding({ unit = 'count', forbids = false, ...parts }) {
  return { unit, ...parts, isForbidding: forbids && !parts.isMet };
}

/**
 * A sysctl that needs a minimum. The suggested line raises values that are too low and keeps the others.
 * @param {Machine} machine
 * @param {string} name
 * @param {number} needed
 * @param {string} why
 * @param {{ forbids?: boolean, label?: string, unit?: Finding['unit'], at?: number, raised?: number[] }} [how] of several
 *   values, `at` is the one that counts, and `raised` is what all of them should be
 * @returns {Finding | null}
 */
export function atLeast(
  machine,
  name,
  needed,
  why,
  { forbids, label, unit, at = 0, raised = [needed] } = {},
) {
  const values = numbersOf(machine, name);
  if (!values) return null;
  const line = values.map((value, i) => Math.max(value, Math.ceil(raised[i] ?? 0))).join(' ');
  return finding({
    name: label ?? name,
    unit,
    now: values[at],
    needed: Math.ceil(needed),
    why,
    isMet: values[at] >= Math.ceil(needed),
    forbids,
    fix: { file: SYSCTL_FILE, line: `${name} = ${line}` },
  });
}
