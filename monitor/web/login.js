/*
 * The login of the dashboard, for --admin-token: a form without scripts.
 */
import { createHash } from 'node:crypto';
import { RequestError, readBody } from '../../lib/router.js';
import { PAGE_HEADERS } from './assets.js';

const MOST_BYTES = 4096;

const STYLE = `
:root { color-scheme: light dark; --page: #f4f6f8; --card: #fff; --text: #17202a; --soft: #55606c; --line: #c8d0d8; --accent: #0b66a8; --on-accent: #fff; --bad: #b42318; }
@media (prefers-color-scheme: dark) { :root { --page: #0e1216; --card: #161c22; --text: #e4e9ee; --soft: #9aa7b3; --line: #3a4652; --accent: #5cb8f0; --on-accent: #06202f; --bad: #ff9a8d; } }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; background: var(--page); color: var(--text); font: 16px/1.5 system-ui, sans-serif; }
main { box-sizing: border-box; width: min(24rem, 100% - 2rem); background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 1.5rem; }
h1 { margin: 0 0 .25rem; font-size: 1.3rem; }
p { margin: 0 0 1rem; color: var(--soft); }
.bad { color: var(--bad); }
label { display: block; margin-bottom: .25rem; }
input, button { box-sizing: border-box; width: 100%; height: 2.75rem; font: inherit; color: inherit; border: 1px solid var(--line); border-radius: 6px; padding: 0 .75rem; background: var(--page); }
button { margin-top: .75rem; border-color: var(--accent); background: var(--accent); color: var(--on-accent); font-weight: 600; cursor: pointer; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
`;

const POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ');

/** @param {string} problem '' if there is none @returns {import('../../lib/router.js').Answer} */
export function loginPage(problem) {
  const line = problem ? `<p class="bad" role="alert">${problem}</p>` : '';
  const body = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Log in · Holdfast</title>
<style>${STYLE}</style>
<main>
<h1>Holdfast</h1>
<p>The token is what the server was started with (--admin-token).</p>
${line}
<form method="post" action="/login">
<label for="token">Admin token</label>
<input id="token" name="token" type="password" autocomplete="current-password" required autofocus>
<button>Log in</button>
</form>
</main>
`;
  const headers = { ...PAGE_HEADERS, 'Content-Security-Policy': POLICY };
  return { status: 401, type: 'text/html; charset=utf-8', headers, body };
}

/**
 * POST /login: a right token gets a session.
 * @param {import('../access.js').Access} access @param {import('node:http').IncomingMessage} request
 * @returns {Promise<import('../../lib/router.js').Answer>}
 * @throws {RequestError} 404 without --admin-token, 413, 429
 */
export async function logIn(access, request) {
  if (!access.token) throw new RequestError(404, 'there is no --admin-token: nobody needs to log in');
  const token = new URLSearchParams(await readBody(request, MOST_BYTES)).get('token') ?? '';
  if (access.isToken(token)) {
    const headers = { Location: '/', 'Set-Cookie': access.sessionFor(request) };
    return { status: 303, headers };
  }
  await access.slowDown();
  return loginPage('This is not the token.');
}
