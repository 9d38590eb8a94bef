/*
 * Lets the shards of a native core listen, with errors like those of node:net.
 */
import { getSystemErrorName } from 'node:util';
import { codeOf } from '../lib/errors.js';

/** Errors of a system without IPv6. */
const NO_IPV6 = ['EAFNOSUPPORT', 'EADDRNOTAVAIL'];

/** @typedef {import('../native/types.js').Core} Core */
/** @typedef {import('../native/types.js').Native} Native */

/**
 * Lets all shards listen on a port.
 * @param {Core} core
 * @param {string} address '' for all of IPv6 and IPv4
 * @param {number} port 0 takes a free one
 * @param {boolean} isTls
 * @returns {number} the port
 * @throws {NodeJS.ErrnoException}
 */
export function bind(core, address, port, isTls) {
  return onAddress(address, (each) => core.listen(each, port, isTls));
}

/**
 * Claims a port: it fails if anybody else listens on it, and until it is released it makes the claims of others fail.
 * Shards share their port (SO_REUSEPORT), so the kernel alone would let another process of this user share it too.
 * @param {Native} native
 * @param {string} address '' for all of IPv6 and IPv4
 * @param {number} port 0 takes a free one
 * @returns {import('../native/types.js').PortClaim}
 * @throws {NodeJS.ErrnoException} EADDRINUSE
 */
export function claimPort(native, address, port) {
  return onAddress(address, (each) => new native.PortClaim(each, port));
}

/**
 * Shares a port that another process has claimed with `claimPort`: a server that takes over from it.
 * @param {Native} native
 * @param {string} address '' for all of IPv6 and IPv4
 * @param {number} port
 * @returns {import('../native/types.js').PortClaim}
 * @throws {NodeJS.ErrnoException} EADDRINUSE
 */
export function joinPort(native, address, port) {
  return onAddress(address, (each) => native.PortClaim.join(each, port));
}

/**
 * @template T
 * @param {string} address '' for all of IPv6 and IPv4
 * @param {(address: string) => T} listen
 * @returns {T}
 */
function onAddress(address, listen) {
  if (address !== '') return withCode('listen', () => listen(address));
  try {
    return withCode('listen', () => listen('::'));
  } catch (error) {
    if (!NO_IPV6.includes(codeOf(error))) throw error;
    return withCode('listen', () => listen('0.0.0.0'));
  }
}

/**
 * Gives errors of native a code.
 * @template T
 * @param {string} syscall what failed, if something does
 * @param {() => T} call of native
 * @returns {T}
 * @throws {NodeJS.ErrnoException}
 */
export function withCode(syscall, call) {
  try {
    return call();
  } catch (error) {
    throw systemError(error, syscall);
  }
}

/** @param {unknown} error of native, whose message is 'errno NUMBER' @param {string} syscall */
function systemError(error, syscall) {
  const number = /^errno (\d+)$/.exec(/** @type {Error} */ (error).message)?.[1];
  if (!number) return error;
  const code = getSystemErrorName(-Number(number));
  return Object.assign(new Error(`${syscall} ${code}`), { code, syscall, errno: -Number(number) });
}
