/*
 * The recipes of docs/recipes.md as programs: each is written into a folder of its own, and its commands are run there. Only ports differ.
 */
import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { SECRET } from './hub.js';
import { quietPort } from './port.js';
import { ROOT, run, temporaryFolder } from './server.js';
import { until } from './until.js';

/** @typedef {import('node:test').TestContext} TestContext */
/** @typedef {{ language: string, code: string }} Block */

export const RECIPES = readFileSync(join(ROOT, 'docs/recipes.md'), 'utf8');
const SECTIONS = RECIPES.split(/^## /m).map((text) => ({
  heading: text.slice(0, text.indexOf('\n')),
  blocks: [...text.matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(([, language, code]) => ({ language, code })),
}));
/** All but the introduction. */
export const HEADINGS = SECTIONS.slice(1).map(({ heading }) => heading);
/** The name of a file is in its first line, or in its second if the first has to be another. */
const NAME = /^(?:<\?php\n)?(?:\/\/|#|<!--) ([\w./-]+\.\w+)(?: -->)?\n/;
/** Installs something: what it names is linked, or comes from a package of the system. */
const INSTALLS = /^(npm install|composer require|pip install) /;
/** Ports in the recipes. Times are the same numbers, but before a bracket. */
const PORTS = /\b(3000|4222|8000|8080|8888|8889|8890|8891)\b(?!\))/g;

/** @param {Block} block @returns {string} '' if it is no file */
const nameOf = ({ code }) => NAME.exec(code)?.[1] ?? '';

/** `npm test` tells npm about its own package. */
const ENV = Object.fromEntries(
  Object.entries(process.env).filter(
    ([name]) => !/^npm_(package|lifecycle|config_local_prefix)|^INIT_CWD$/.test(name),
  ),
);

/** @param {string} folder @param {readonly Block[]} blocks */
function linkPackages(folder, blocks) {
  const installs = blocks.flatMap(({ code }) => [...code.matchAll(/^npm install (.+)$/gm)]);
  const names = new Set(installs.flatMap(([, list]) => list.split(' ')));
  mkdirSync(join(folder, 'node_modules/.bin'), { recursive: true });
  for (const name of names) {
    const target = name === 'holdfast' ? ROOT : join(ROOT, 'node_modules', name);
    symlinkSync(target, join(folder, 'node_modules', name));
  }
  symlinkSync('../holdfast/server.js', join(folder, 'node_modules/.bin/holdfast'));
}

/** @param {TestContext} t @param {string} heading of the recipe */
export async function openRecipe(t, heading) {
  const [introduction] = SECTIONS;
  const section = SECTIONS.find((one) => one.heading === heading);
  assert.ok(section, heading);
  const folder = temporaryFolder(t);
  chmodSync(folder, 0o755); // nginx runs as another user
  linkPackages(
    folder,
    [introduction, section].flatMap(({ blocks }) => blocks),
  );
  const ports = await portsIn([introduction, section].flatMap(({ blocks }) => blocks));
  const ported = (/** @type {string} */ text) => text.replace(PORTS, (port) => String(ports.get(port)));
  for (const block of [...introduction.blocks, ...section.blocks]) writeBlock(folder, block, ported);
  return new Recipe(t, { folder, blocks: section.blocks, ports, ported });
}

/** @param {readonly Block[]} blocks @returns {Promise<Map<string, number>>} a free one for each */
async function portsIn(blocks) {
  const named = ['8888', '8890', ...blocks.flatMap(({ code }) => code.match(PORTS) ?? [])];
  const pairs = [...new Set(named)].map(async (port) => /** @type {const} */ ([port, await quietPort()]));
  return new Map(await Promise.all(pairs));
}

/** @param {string} folder @param {Block} block @param {(text: string) => string} ported */
function writeBlock(folder, block, ported) {
  const name = nameOf(block);
  if (name === '') return;
  mkdirSync(dirname(join(folder, name)), { recursive: true });
  writeFileSync(join(folder, name), ported(block.code));
}

export class Recipe {
  /** @param {TestContext} t @param {{ folder: string, blocks: readonly Block[], ports: Map<string, number>, ported: (text: string) => string }} parts */
  constructor(t, { folder, blocks, ports, ported }) {
    this.t = t;
    this.folder = folder;
    this.ports = ports;
    this.ported = ported;
    /** Commands that were not run yet. @type {Set<string>} */
    this.commands = new Set(
      blocks.filter((one) => one.language === 'sh' && !INSTALLS.test(one.code)).map(({ code }) => code),
    );
    /** @type {Record<string, string | undefined>} */
    this.env = {
      ...ENV,
      HOLDFAST_JWT_SECRET: SECRET,
      HOLDFAST_PORT: String(this.port('8888')),
      HOLDFAST_ADMIN_PORT: String(this.port('8890')),
      HOLDFAST_WORKERS: '1',
      HOLDFAST_NO_LOG: '1',
    };
  }

  /** @param {string} port in the text @returns {number} the one that is used */
  port(port) {
    const found = this.ports.get(port);
    assert.ok(found, port);
    return found;
  }

  /** @param {string} path @param {string} [port] */
  url(path, port = '3000') {
    return `http://localhost:${this.port(port)}${path}`;
  }

  /**
   * Runs a command of the recipe.
   * @param {RegExp} pattern that only its text matches
   */
  begin(pattern) {
    const found = [...this.commands].filter((code) => pattern.test(code));
    assert.equal(found.length, 1, `${pattern} matches one command of ${JSON.stringify([...this.commands])}`);
    this.commands.delete(found[0]);
    return this.shell(found[0]);
  }

  /** @param {string} code */
  shell(code) {
    const { folder: cwd, env } = this;
    // Its stdin is a socket, and then bash reads ~/.bashrc, which may change PATH.
    const args = ['--norc', '-ec', this.ported(code)];
    return run(this.t, 'bash', args, { cwd, env: /** @type {NodeJS.ProcessEnv} */ (env) });
  }

  /** @param {RegExp} pattern @returns {Promise<string>} what the command says, once it has succeeded */
  async finish(pattern) {
    const { exit, output } = this.begin(pattern);
    const { code } = await exit;
    assert.equal(code, 0, output.stderr + output.stdout);
    return output.stdout;
  }

  /** Begins a command, and waits for what it says. @param {RegExp} pattern @param {RegExp} said */
  async start(pattern, said) {
    const program = this.begin(pattern);
    const { child, output } = program;
    await until(
      () => {
        const all = output.stdout + output.stderr;
        assert.equal(child.exitCode, null, all);
        return said.test(all);
      },
      () => `${pattern} says ${said}, not ${output.stdout}${output.stderr}`,
    );
    return program;
  }

  /** The server of the recipe. @param {RegExp} [pattern] */
  startServer(pattern = /^npx holdfast/) {
    return this.start(pattern, /listening on/);
  }

  /** The program of the recipe. */
  startApplication() {
    return this.start(/^node server\.js/, /http:\/\/localhost:/);
  }

  /** The token of the introduction. */
  async token() {
    const { exit, output } = this.shell("npx holdfast token --publish '*' --expires 1y");
    assert.equal((await exit).code, 0, output.stderr);
    return output.stdout.trim();
  }

  /** Nothing of the recipe is left out. */
  end() {
    assert.deepEqual([...this.commands], []);
  }
}
