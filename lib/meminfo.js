/*
 * Parses /proc/meminfo: for the monitor (memory in use) and the limits (available memory).
 */

/**
 * Missing rows count as 0.
 * @typedef {object} Meminfo
 * @property {number} totalBytes
 * @property {number} usedBytes neither free nor buffers and cache. Slab is part of it: the kernel's memory of a held socket
 *   (its inode and dentry) counts as reclaimable, but can't be reclaimed
 * @property {number} freeBytes
 * @property {number} availableBytes the kernel's estimate of what new programs can use without swapping
 * @property {number} cachedBytes buffers and cache
 * @property {number} slabBytes
 */

/** @param {string} text @returns {Meminfo} */
export function parseMeminfo(text) {
  const rows = new Map([...text.matchAll(/^(\w+):\s+(\d+) kB$/gm)].map(([, name, kb]) => [name, Number(kb)]));
  const bytesOf = (/** @type {string} */ name) => (rows.get(name) ?? 0) * 1024;
  const [totalBytes, freeBytes] = [bytesOf('MemTotal'), bytesOf('MemFree')];
  const cachedBytes = bytesOf('Buffers') + bytesOf('Cached');
  return {
    totalBytes,
    usedBytes: totalBytes - freeBytes - cachedBytes,
    freeBytes,
    availableBytes: bytesOf('MemAvailable'),
    cachedBytes,
    slabBytes: bytesOf('Slab'),
  };
}
