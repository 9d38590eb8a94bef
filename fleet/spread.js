/*
 * How many drones hold the streams, and how the streams are shared out among them. Pure.
 */
import { formatCount } from '../lib/format.js';

/** Descriptors that a drone has for itself. */
const OWN_DESCRIPTORS = 64;

/**
 * @param {object} wish
 * @param {number} wish.streams 0 where it is not known yet
 * @param {number} wish.ramp streams to open a second, 0 where it is not given; a drone opens one a second at least
 * @param {number} wish.drones 0 for as many as are needed
 * @param {boolean} wish.isNative whether drones dial through the native core, and hold more than a process has descriptors
 * @param {number} wish.cores
 * @param {number} wish.descriptorLimit of a process
 * @returns {{ count: number, why: string }} why is '' where the number was given
 */
export function planDrones({ streams, ramp, drones, isNative, cores, descriptorLimit }) {
  if (drones > 0) return { count: drones, why: '' };
  const most = Math.min(streams || Number.POSITIVE_INFINITY, ramp || Number.POSITIVE_INFINITY);
  if (isNative) return { count: Math.min(cores, most), why: 'native dialer, one drone a core' };
  const each = descriptorLimit - OWN_DESCRIPTORS;
  const count = Math.max(1, Math.ceil(streams / each));
  return { count: Math.min(count, most), why: `plain sockets, a process has ${formatCount(each)} to spare` };
}

/**
 * @param {number} total @param {number} count
 * @returns {number[]} shares that differ by one at most and add up to the total
 */
export function spread(total, count) {
  return Array.from({ length: count }, (_, i) => Math.floor((total + count - 1 - i) / count));
}
