/*
 * Makes the PNG of a page smaller: Chromium filters rows (PNG specification, section 9), which helps for photographs. Large plain areas and
 * text compress better without. Pure.
 */
import { deflateSync, inflateSync } from 'node:zlib';

const SIGNATURE_BYTES = 8;
/** Bytes of a pixel with 8 bits per channel, by colour type: RGB and RGBA. @type {Record<number, number>} */
const PIXEL_BYTES = { 2: 3, 6: 4 };

/** @typedef {{ type: string, data: Buffer }} Chunk */

/** @param {Buffer} png from Chromium, not interlaced @returns {Buffer} the same picture, or the same bytes if that is not smaller */
export function recompressed(png) {
  const chunks = chunksIn(png);
  const header = /** @type {Chunk} */ (chunks.find(({ type }) => type === 'IHDR')).data;
  const [width, height, pixelBytes] = [
    header.readUInt32BE(0),
    header.readUInt32BE(4),
    PIXEL_BYTES[header[9]],
  ];
  const data = chunks.filter(({ type }) => type === 'IDAT').map((chunk) => chunk.data);
  const rows = unfiltered(inflateSync(Buffer.concat(data)), width * pixelBytes, height, pixelBytes);
  const body = deflateSync(rows, { level: 9, memLevel: 9 });
  const made = [
    ['IHDR', header],
    ['IDAT', body],
    ['IEND', Buffer.alloc(0)],
  ].map(([type, bytes]) => chunkOf(String(type), /** @type {Buffer} */ (bytes)));
  const smaller = Buffer.concat([png.subarray(0, SIGNATURE_BYTES), ...made]);
  return smaller.length < png.length ? smaller : png;
}

/** @param {Buffer} png @returns {Chunk[]} */
function chunksIn(png) {
  const chunks = [];
  for (let at = SIGNATURE_BYTES; at < png.length; ) {
    const length = png.readUInt32BE(at);
    chunks.push({
      type: png.toString('latin1', at + 4, at + 8),
      data: png.subarray(at + 8, at + 8 + length),
    });
    at += length + 12;
  }
  return chunks;
}

/** @param {Buffer} raw @param {number} rowBytes @param {number} height @param {number} pixelBytes @returns {Buffer} rows with filter 0 */
function unfiltered(raw, rowBytes, height, pixelBytes) {
  const out = Buffer.alloc(raw.length);
  for (let y = 0; y < height; y++) {
    const start = y * (rowBytes + 1) + 1;
    for (let i = 0; i < rowBytes; i++) {
      const left = i >= pixelBytes ? out[start + i - pixelBytes] : 0;
      const up = y > 0 ? out[start + i - rowBytes - 1] : 0;
      const corner = y > 0 && i >= pixelBytes ? out[start + i - rowBytes - 1 - pixelBytes] : 0;
      out[start + i] = raw[start + i] + predicted(raw[start - 1], left, up, corner);
    }
  }
  return out;
}

/** @param {number} filter @param {number} left @param {number} up @param {number} corner */
function predicted(filter, left, up, corner) {
  if (filter < 3) return [0, left, up][filter];
  return filter === 3 ? (left + up) >> 1 : paeth(left, up, corner);
}

/** @param {number} left @param {number} up @param {number} corner */
function paeth(left, up, corner) {
  const [a, b, c] = [up - corner, left - corner, left + up - 2 * corner].map(Math.abs);
  if (a <= b && a <= c) return left;
  return b <= c ? up : corner;
}

/** @param {string} type @param {Buffer} data @returns {Buffer} */
function chunkOf(type, data) {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(crcOf(body));
  return Buffer.concat([length, body, sum]);
}

/** CRC-32; that of zlib is not in Node 20. @param {Buffer} bytes */
function crcOf(bytes) {
  let crc = ~0;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc >>> 0;
}
