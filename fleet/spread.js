/*
 * How many drones to start, and how the streams are divided among them. Pure.
 */
import { OWN_DESCRIPTORS } from '../lib/descriptors.js';
import { formatNoun } from '../lib/format.js';

/**
 * @param {object} wanted
 * @param {number} wanted.streams 0 if not known yet
 * @param {number} wanted.ramp streams to open per second, 0 if not given; a drone opens at least one per second
 * @param {number} wanted.drones 0 for as many as needed
 * @param {boolean} wanted.isNative whether drones use the native core and so can hold more streams than one process has descriptors
 * @param {number} wanted.cores
 * @param {number} wanted.descriptorLimit of a process
 * @returns {{ count: number, why: string }} why is '' if the number was given
 */
export function planDrones({ streams, ramp, drones, isNative, cores, descriptorLimit }) {
  if (drones > 0) return { count: drones, why: '' };
  const most = Math.min(streams || Number.POSITIVE_INFINITY, ramp || Number.POSITIVE_INFINITY);
  if (isNative) return { count: Math.min(cores, most), why: 'native dialer, one drone per core' };
  const each = descriptorLimit - OWN_DESCRIPTORS;
  const count = Math.max(1, Math.ceil(streams / each));
  return { count: Math.min(count, most), why: `plain sockets, ${formatNoun(each, 'stream')} per process` };
}

/**
 * @param {number} total @param {number} count
 * @returns {number[]} shares that differ by at most one and add up to the total
 */
export function spread(total, count) {
  return Array.from({ length: count }, (_, i) => Math.floor((total + count - 1 - i) / count));
}
