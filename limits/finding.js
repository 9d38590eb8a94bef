/*
 * How a finding is made: one shape for all limits, and one way for the sysctls that have to be so much or more.
 */

export const SYSCTL_FILE = '/etc/sysctl.d/90-holdfast.conf';
export const LIMITS_FILE = '/etc/security/limits.d/90-holdfast.conf';

/** @typedef {import('./kernel.js').Machine} Machine */
/** @typedef {import('./needs.js').Needs} Needs */
/** @typedef {(machine: Machine, needs: Needs) => Finding | null} Row null where there is no such limit here */

/**
 * @typedef {object} Finding
 * @property {string} name
 * @property {'count' | 'bytes' | 'percent'} unit percent is of one core
 * @property {number | string} now
 * @property {number | string} needed 'any' where it does not matter
 * @property {string} why one short sentence
 * @property {boolean} isMet
 * @property {boolean} isForbidding that the run can't be as long as it is not met: streams would be refused, cut, or
 *   never opened. What makes it worse but not impossible (late ticks, handshakes tried again) is advice
 * @property {{ file: string, line: string }} fix what to write where; `file` is '' where no file helps. `line` may be two
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
 * A sysctl that has to be so much or more. The line raises what is too low, and leaves the rest as it is.
 * @param {Machine} machine
 * @param {string} name
 * @param {number} needed
 * @param {string} why
 * @param {{ forbids?: boolean, label?: string, unit?: Finding['unit'], at?: number, raised?: number[] }} [how] `at`
 *   says which value of several counts, `raised` what all of them should be
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
