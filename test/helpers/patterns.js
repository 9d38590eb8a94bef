/*
 * Random URL patterns, and topics that they may match.
 */

/** @typedef {(below: number) => number} Random */

export const BASE = 'https://hub.example/.well-known/mercure';

const STARTS =
  'https://example.com/ https://example.com http:// https:// / https://:host/ *://*.example.com/ http{s}?:// foo:// urn: data: ' +
  'ws://a: https://u:p@h/ wss://h:443/ http://[::1]/ ? # *:* file:/// https://*.ex.org javascript: {https}://a/ ftp://x:21/ ' +
  'https://h/../ HTTPS://EXAMPLE.com/ :proto://h/';
const PIECES =
  'a b ab / / / :x :y :z * {a} {/:p}? {/b}* {/:q}+ {.:r}? ? # : @ . .. - \\* \\: {:w.json}? ?q= :id? :ids+ :all* é %41 %2F [ ] ' +
  '\\ ( (.*) ([^\\/]+?) (\\d+) { } + = & \' " | ^ < ~ 80 443 localhost {-:s}* {a*b}? {*c}+ {x}+ {xy}* {ab:t}+ {:v/a}*';
const TOPIC_STARTS =
  'https://example.com/ https://example.com http://a https://sub.example.com/ / foo://h/ urn: data: ws://a:80/ wss://h/ ' +
  'https://u:p@h/ http://[::1]/ ? # file:/// https://x.ex.org javascript: ftp://x/ mailto: https://[';
const TOPIC_PIECES =
  'a b ab / / / . .. - * : ?q= # x xy é %41 %2F c .json a-b q = & \' 443 // " b/a ababa xyxy';

/** @param {Random} random @param {string} words */
const oneOf = (random, words) => words.split(' ')[random(words.split(' ').length)];

/** @param {Random} random @param {string} starts @param {string} pieces */
function text(random, starts, pieces) {
  const start = random(8) === 0 ? '' : oneOf(random, starts);
  return (
    start + Array.from({ length: random(7) }, () => oneOf(random, pieces)).join(random(9) === 0 ? ' ' : '')
  );
}

/** @param {Random} random */
export const randomTopic = (random) => text(random, TOPIC_STARTS, TOPIC_PIECES);

/**
 * With schemes that are not special, it leaves out paths that start with two slashes (hub/matching/patterns.js), and what the URL parser of
 * Node 20 gets wrong there: `..` and `^`.
 * @param {Random} random
 * @returns {string}
 */
export function randomPattern(random) {
  const pattern = text(random, STARTS, PIECES);
  const isSpecial = !/^(foo|urn|data|javascript|:proto|\*)/.test(pattern);
  return isSpecial || !/\/\/|\.\.|\^/.test(pattern.replace('://', '')) ? pattern : randomPattern(random);
}

/** @param {Random} random @param {string} pattern @returns {string} a topic that it matches quite often */
export function topicFor(random, pattern) {
  return pattern
    .replace(/\{([^{}]*)\}[?*+]?/g, (_, group) => group.repeat(random(3)))
    .replace(/:[a-z]+[?*+]?/g, () => oneOf(random, 'a b 7 a/b x.y'))
    .replace(/\([^)]*\)/g, 'a')
    .replace(/\*/g, () => oneOf(random, 'a a/b sub'))
    .replace(/\\/g, '');
}
