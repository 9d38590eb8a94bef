/*
 * Estimates the price of instances. Prices change; this table lets a dry run work without contacting AWS.
 */
import { formatCount } from '../../../lib/format.js';

/** When they were last updated. */
const PRICES_AS_OF = '2026-06';
const PRICED_REGION = 'us-east-1';
/** Dollars per hour for a public IPv4 address. */
const ADDRESS_DOLLARS = 0.005;

/**
 * Dollars per hour: on-demand, Linux, us-east-1. Within a family the price doubles with the size.
 * @type {Record<string, number>}
 */
const DOLLARS_PER_HOUR = {
  't3.micro': 0.0104,
  't3.small': 0.0208,
  't3.medium': 0.0416,
  't3.large': 0.0832,
  'c6i.large': 0.085,
  'c6i.xlarge': 0.17,
  'c6i.2xlarge': 0.34,
  'm7g.large': 0.0816,
  'm7g.xlarge': 0.1632,
};

/**
 * @param {string} type of the instances
 * @param {number} count
 * @returns {string} one line
 */
export function estimateLine(type, count) {
  const dollars = DOLLARS_PER_HOUR[type];
  if (dollars === undefined) {
    const known = Object.keys(DOLLARS_PER_HOUR).join(', ');
    return `estimate: unknown price for ${type} (known: ${known})`;
  }
  const total = (count * (dollars + ADDRESS_DOLLARS)).toFixed(2);
  const parts = `${formatCount(count)} x ($${dollars} + $${ADDRESS_DOLLARS} for a public address)`;
  const basis = `on-demand prices of ${PRICED_REGION} in ${PRICES_AS_OF}`;
  return `estimate: $${total} per hour = ${parts}; ${basis}; other regions differ, traffic and disks are extra`;
}
