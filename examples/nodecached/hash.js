/*
 * The hash of keys: HalfSipHash-1-3, as the Linux kernel uses it for hash tables. Who doesn't know its two secret words can't choose keys
 * that share a bucket. With FNV and a secret start, eight bits of it decided which keys collide.
 */
const BEGIN_2 = 0x6c796765;
const BEGIN_3 = 0x74656462;
const LAST_ROUNDS = 3;

/**
 * @param {number} secret @param {number} secret2 words of 32 bits
 * @param {Uint8Array} bytes @param {number} start @param {number} end
 * @returns {number} 32 bits, signed
 */
export function keyedHash(secret, secret2, bytes, start, end) {
  let v0 = secret;
  let v1 = secret2;
  let v2 = BEGIN_2 ^ secret;
  let v3 = BEGIN_3 ^ secret2;
  const last = (end - start) >> 2;
  for (let word = 0; word <= last + LAST_ROUNDS; word++) {
    let part = 0;
    if (word < last) part = wordAt(bytes, start + word * 4);
    else if (word === last) part = lastWord(bytes, start, end);
    else if (word === last + 1) v2 ^= 0xff;
    v3 ^= part;
    v0 = (v0 + v1) | 0;
    v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0;
    v0 = (v0 << 16) | (v0 >>> 16);
    v2 = (v2 + v3) | 0;
    v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2;
    v0 = (v0 + v3) | 0;
    v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0;
    v2 = (v2 + v1) | 0;
    v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2;
    v2 = (v2 << 16) | (v2 >>> 16);
    v0 ^= part;
  }
  return v1 ^ v3;
}

/** @param {Uint8Array} bytes @param {number} at @returns {number} */
const wordAt = (bytes, at) =>
  bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24);

/** What is left after the whole words, and the length. @param {Uint8Array} bytes @param {number} start @param {number} end @returns {number} */
function lastWord(bytes, start, end) {
  let word = (end - start) << 24;
  const from = end - ((end - start) & 3);
  for (let at = from; at < end; at++) word |= bytes[at] << ((at - from) * 8);
  return word;
}
