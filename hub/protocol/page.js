/*
 * What a browser gets that opens the port: a page about this server. It needs nothing else, and may load nothing else.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

const HTML = readFileSync(new URL('page.html', import.meta.url), 'utf8');

/** @param {'script' | 'style'} element of the page @returns {string} what a policy calls its content */
function sourceOf(element) {
  const [, content] = new RegExp(`<${element}>(.*)</${element}>`, 's').exec(HTML) ?? [];
  return `'sha256-${createHash('sha256')
    .update(content ?? '')
    .digest('base64')}'`;
}

const POLICY = {
  'default-src': "'none'",
  'script-src': sourceOf('script'),
  'style-src': sourceOf('style'),
  'connect-src': "'self'",
  'img-src': 'data:',
  'base-uri': "'none'",
  'form-action': "'none'",
  'frame-ancestors': "'none'",
};

/** An answer of a policy. */
export const PAGE = Object.freeze({
  status: 200,
  headers: Object.freeze({
    'Content-Type': 'text/html; charset=utf-8',
    'Content-Security-Policy': Object.entries(POLICY)
      .map((parts) => parts.join(' '))
      .join('; '),
    'X-Content-Type-Options': 'nosniff',
    'Referrer-Policy': 'no-referrer',
    'Cache-Control': 'no-cache',
    Vary: 'Accept',
  }),
  body: HTML,
});
