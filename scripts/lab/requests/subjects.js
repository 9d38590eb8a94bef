/*
 * The servers that are compared: where each comes from, and how it is started.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { cacheFolder, findCommand, installPackage, runTool } from '../install.js';
import { bun, prepareBun } from '../peers.js';
import { ROOT } from '../server.js';
import { noHold } from '../transports.js';

const FOLDER = fileURLToPath(new URL('.', import.meta.url));
const RUST = join(FOLDER, 'rust');
const VELOCY = '0.3.0';
const ELYSIA = '1.4.30';

/** @typedef {import('../lab.js').Lab} Lab */

/**
 * @typedef {object} Subject
 * @property {string} name
 * @property {string} text what it is, with its version
 * @property {boolean} closes whether the connection ends with each answer
 * @property {boolean} [isSilent] whether answers leave out that the connection is kept
 * @property {string} skip why it can't run here, or ''
 * @property {(lab: Lab) => Promise<string>} prepare returns why it has to be skipped, or ''
 * @property {(port: number, cores: number) => string[]} command cores: how many processes or threads serve
 */

/** @returns {Subject[]} from those with the most work for each request to those with the least */
export function subjects() {
  const [express, fastify] = ['express', 'fastify'].map((name) => inModules(name, join(ROOT, 'index.js')));
  const router = inModules('find-my-way', fastify.path || join(ROOT, 'index.js'));
  const cached = { velocy: fromCache('velocy', VELOCY), elysia: fromCache('elysia', ELYSIA) };
  const radix = `node:http with find-my-way ${router.version}`;
  return [
    node('express', `Express ${express.version}`, [express]),
    node('fastify', `Fastify ${fastify.version}, without a schema`, [fastify]),
    { ...node('velocy', `Velocy ${VELOCY}`, [cached.velocy]), prepare: cached.velocy.prepare },
    node('http', radix, [router]),
    node('http-close', `${radix}, which ends the connection after each answer`, [router], 'close'),
    hold('hold', 'Hold with a policy that answers', router),
    hold('hold-pass', `Hold that passes requests on to ${radix}`, router),
    elysia(cached.elysia),
    rust('axum', `axum ${crateVersion('axum')}`),
    rust('hyper', `hyper ${crateVersion('hyper')} by itself: the floor`),
  ];
}

/**
 * A package of npm.
 * @typedef {object} Package
 * @property {string} path its entry, or its folder if it is installed on demand
 * @property {string} version
 * @property {string} problem why it is missing, or ''
 */

/** @param {string} name @param {string} from the file that imports it @returns {Package} */
function inModules(name, from) {
  try {
    const path = createRequire(from).resolve(name);
    return { path, version: versionIn(dirname(path)), problem: '' };
  } catch {
    return { path: '', version: '', problem: `${name} is not installed (npm install)` };
  }
}

/** @param {string} folder of a package, or below it @returns {string} */
function versionIn(folder) {
  try {
    const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    return version ?? versionIn(dirname(folder));
  } catch (error) {
    if (folder === dirname(folder)) throw error;
    return versionIn(dirname(folder));
  }
}

/** @param {string} name @param {string} version @returns {Package & { prepare: Subject['prepare'] }} installed on demand */
function fromCache(name, version) {
  const path = join(cacheFolder(), `${name}-${version}`, 'node_modules', name);
  const prepare = async (/** @type {Lab} */ lab) => (await installPackage(lab, name, version)).problem;
  return { path, version, problem: '', prepare };
}

/** @param {string} name @param {string} text @param {Package[]} packages @param {string[]} words @returns {Subject} */
function node(name, text, packages, ...words) {
  const file = join(FOLDER, 'servers', `${name.replace(/^http-close$/, 'http')}.js`);
  const args = () => [...packages.map(({ path }) => urlOf(path)), ...words];
  return {
    name,
    text,
    closes: words.includes('close'),
    skip: packages.map(({ problem }) => problem).find(Boolean) ?? '',
    prepare: async () => '',
    command: (port, cores) => [process.execPath, file, String(port), String(cores), ...args()],
  };
}

/** @param {string} path of a file or a folder, absolute @returns {string} what `import` takes */
function urlOf(path) {
  return pathToFileURL(createRequire(path).resolve(path)).href;
}

/** @param {string} name @param {string} text @param {Package} router @returns {Subject} */
function hold(name, text, router) {
  const own = { path: join(ROOT, 'index.js'), version: '', problem: noHold() };
  return { ...node(name, text, [own, router]), isSilent: name === 'hold' };
}

/** @param {Package & { prepare: Subject['prepare'] }} elysia @returns {Subject} */
function elysia({ path, version, prepare }) {
  const file = join(FOLDER, 'servers', 'elysia.js');
  return {
    name: 'elysia',
    text: `Elysia ${version} on Bun`,
    closes: false,
    skip: '',
    prepare: async (lab) => (await prepareBun(lab)) || prepare(lab),
    command: (port, cores) => [bun(), file, String(port), String(cores), path],
  };
}

/** @param {'axum' | 'hyper'} name @param {string} text @returns {Subject} */
function rust(name, text) {
  return {
    name,
    text,
    closes: false,
    skip: '',
    prepare: buildRust,
    command: (port, cores) => [join(RUST, 'target', 'release', name), String(port), String(cores)],
  };
}

/** @param {Lab} lab @returns {Promise<string>} */
async function buildRust(lab) {
  const cargo = findCommand('cargo');
  if (!cargo) return 'cargo is not installed (see https://rustup.rs)';
  return runTool(lab, cargo, ['build', '--release', '--locked', '--quiet'], RUST);
}

/** @param {string} name @returns {string} */
function crateVersion(name) {
  const text = readFileSync(join(RUST, 'Cargo.toml'), 'utf8');
  return new RegExp(`^${name} = .*?"=([\\d.]+)"`, 'm').exec(text)?.[1] ?? '';
}
