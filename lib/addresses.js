/*
 * Addresses of clients: ranges of them, and what counts as one client. The native core does the same in address.rs.
 */
import { BlockList, isIP } from 'node:net';

/** The range of a proxy on this machine. */
export const LOOPBACK = ['127.0.0.0/8', '::1'];

const MAPPED = '::ffff:';
const GROUPS = 8;
/** Groups of an IPv6 address that a network gives to one client: a /64. */
const SITE_GROUPS = 4;

/** @param {string} text @returns {boolean} whether it is an address or a range, such as 10.0.0.0/8 */
export function isRange(text) {
  const [, address = '', bits] = /^([^/%]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const version = isIP(address);
  return version !== 0 && Number(bits ?? 0) <= (version === 4 ? 32 : 128);
}

/**
 * @param {readonly string[]} ranges
 * @returns {(address: string) => boolean} whether one of them contains an address
 */
export function inRanges(ranges) {
  const list = new BlockList();
  for (const range of ranges) {
    const [address, bits] = range.split('/');
    const type = typeOf(address);
    if (bits === undefined) list.addAddress(address, type);
    else list.addSubnet(address, Number(bits), type);
  }
  return (address) => isIP(address) !== 0 && list.check(address, typeOf(address));
}

/** @param {string} address */
function typeOf(address) {
  return isIP(address) === 4 ? 'ipv4' : 'ipv6';
}

/**
 * @param {string | undefined} address as Node gives it; undefined for a Unix socket, or if the client has left
 * @returns {string} an IPv4 address that is mapped to IPv6 as IPv4; '' if unknown
 */
export function plainAddress(address = '') {
  return address.startsWith(MAPPED) && isIP(address.slice(MAPPED.length)) === 4
    ? address.slice(MAPPED.length)
    : address;
}

/**
 * @param {string} address from `plainAddress`
 * @returns {string} the same for all addresses that one client can choose from: an IPv4 address, or a /64 of IPv6
 */
export function siteOf(address) {
  if (!address.includes(':')) return address;
  const [before, after = ''] = address.split('::').map((half) => half.split(':').filter(Boolean));
  const zeros = Array(Math.max(0, GROUPS - before.length - after.length)).fill('0');
  return [...before, ...zeros, ...after].slice(0, SITE_GROUPS).join(':');
}
