/*
 * What every server has to answer, and the comparison with what it answers: status, headers and body, apart from the value of
 * Date. Pure. The order of the headers and the case of their names are free, so all answers have the same number of bytes.
 */

/** @typedef {{ status: string, headers: [name: string, value: string][], body: string, bytes: number }} Answer */
/** @typedef {{ target: string, name: string, id?: string }} Question */

const DATE = /^(Sun|Mon|Tue|Wed|Thu|Fri|Sat), \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT$/;
const HEAD_END = '\r\n\r\n';
/** The path that is measured. */
export const MEASURED = '/bench/testing?id=10';

/** @returns {Question[]} the last one differs each time: nobody can have its answer ready */
export function questions() {
  const random = Math.random().toString(36).slice(2);
  return [
    { target: MEASURED, name: 'testing', id: '10' },
    { target: '/bench/testing', name: 'testing' },
    { target: '/bench/J%C3%BCrgen%20%22%2F%22?id=%31%30%2B1%26', name: 'Jürgen "/"', id: '10+1&' },
    { target: `/bench/${random}?other=1&id=${random}x`, name: random, id: `${random}x` },
  ];
}

/**
 * @param {Question} question @param {boolean} closes whether the connection ends with the answer
 * @param {boolean} [isSilent] whether it does not say that the connection goes on @returns {Answer}
 */
export function expectedAnswer({ name, id }, closes, isSilent = false) {
  const body = JSON.stringify({ name, id });
  /** @type {[string, string][]} */
  const ends = closes
    ? [['connection', 'close']]
    : isSilent
      ? []
      : [
          ['connection', 'keep-alive'],
          ['keep-alive', 'timeout=5'],
        ];
  /** @type {[string, string][]} */
  const headers = [
    ...ends,
    ['content-length', String(Buffer.byteLength(body))],
    ['content-type', 'application/json; charset=utf-8'],
    ['date', new Date().toUTCString()],
    ['x-powered-by', 'benchmark'],
  ];
  const lines = ['HTTP/1.1 200 OK', ...headers.map(([name, value]) => `${name}: ${value}`)];
  return {
    status: lines[0],
    headers: headers.sort(byName),
    body,
    bytes: Buffer.byteLength(lines.join('\r\n') + HEAD_END + body),
  };
}

/** @param {Buffer} received @returns {Answer | null} null while it is incomplete */
export function parseAnswer(received) {
  const end = received.indexOf(HEAD_END);
  if (end < 0) return null;
  const [status, ...lines] = received.toString('latin1', 0, end).split('\r\n');
  const headers = lines.map(headerOf).sort(byName);
  const start = end + HEAD_END.length;
  const length = Number(headers.find(([name]) => name === 'content-length')?.[1] ?? 0);
  if (received.length < start + length) return null;
  // With something after it, if it was sent.
  return { status, headers, body: received.toString('utf8', start), bytes: received.length };
}

/** @param {string} line @returns {[string, string]} */
function headerOf(line) {
  const colon = line.indexOf(':');
  return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
}

/** @param {[string, string]} one @param {[string, string]} other */
function byName([one], [other]) {
  return one < other ? -1 : Number(one > other);
}

/** @param {Answer} answer @param {Answer} expected @returns {string[]} what is different, for people */
export function differences(answer, expected) {
  const [own, wanted] = [answer, expected].map(partsOf);
  const extra = own.filter((part) => !wanted.includes(part)).map((part) => `unexpected: ${part}`);
  const missing = wanted.filter((part) => !own.includes(part)).map((part) => `missing: ${part}`);
  const sizes = answer.bytes === expected.bytes ? [] : [`${answer.bytes} bytes, not ${expected.bytes}`];
  return [...extra, ...missing, ...sizes];
}

/** @param {Answer} answer @returns {string[]} */
function partsOf({ status, headers, body }) {
  const lines = headers.map(([name, value]) =>
    name === 'date' && DATE.test(value) ? 'date' : `${name}: ${value}`,
  );
  return [status, ...lines, body];
}
