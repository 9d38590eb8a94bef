/*
 * What a version is called, everywhere; the changelog; and what package.json promises.
 */

/** @typedef {{ where: string, version: string | undefined }} Found */

/**
 * @param {Record<string, string>} texts the files that have a version, by path
 * @returns {Found[]}
 */
export function versionsIn(texts) {
  return Object.entries(texts).flatMap(([path, text]) => {
    if (path.endsWith('package-lock.json')) return inPackageLock(path, JSON.parse(text));
    if (path.endsWith('.json')) return [{ where: path, version: JSON.parse(text).version }];
    if (path.endsWith('.toml')) return [{ where: path, version: /^version = "(.+)"$/m.exec(text)?.[1] }];
    if (path.endsWith('.lock')) return inCargoLock(path, text);
    return [{ where: path, version: newestIn(text)?.version }];
  });
}

/** @param {string} path @param {{ version: string, packages: Record<string, { version: string }> }} lock @returns {Found[]} */
function inPackageLock(path, { version, packages }) {
  const own = ['', 'fleet', 'scripts'].map((name) => ({
    where: `${path} (${name || 'root'})`,
    version: packages[name]?.version,
  }));
  return [{ where: path, version }, ...own];
}

/** @param {string} path @param {string} text @returns {Found[]} those of our own crates */
function inCargoLock(path, text) {
  const own = [...text.matchAll(/^name = "(holdfast-(?:core|native))"\nversion = "(.+)"$/gm)];
  return own.map(([, name, version]) => ({ where: `${path} (${name})`, version }));
}

/** @param {string} version the one of package.json @param {Found[]} found @returns {string[]} */
export function versionProblems(version, found) {
  const others = found.filter((one) => one.version !== version);
  return others.map((one) => `${one.where} has ${one.version ?? 'none'}, and package.json has ${version}`);
}

/** @param {string} changelog @returns {{ version: string, date: string, body: string } | null} its newest release */
export function newestIn(changelog) {
  const section = changelog.split(/^## /m).find((text) => /^\[\d/.test(text)) ?? '';
  const [heading = '', version, date = ''] = /^\[([^\]]+)\](?: - (\S+))?.*\n/.exec(section) ?? [];
  return version ? { version, date, body: section.slice(heading.length).trim() } : null;
}

/** @param {string} changelog @param {string} today such as 2026-11-22 @returns {string[]} */
export function changelogProblems(changelog, today) {
  const newest = newestIn(changelog);
  if (!newest) return ['it has no release: expected ## [VERSION] - DATE'];
  const { version, date, body } = newest;
  const waiting = /^## \[Unreleased\]\n(.*?)^## /ms.exec(changelog)?.[1].trim();
  return [
    ...(isDate(date) ? [] : [`${version} has the date '${date}': expected one such as ${today}`]),
    ...(isDate(date) && date > today ? [`${version} has the date ${date}, and today is ${today}`] : []),
    ...(/^- /m.test(body) ? [] : [`${version} says nothing`]),
    ...(waiting ? [`there are changes under Unreleased: move them to ${version}`] : []),
  ];
}

/** @param {string} text */
const isDate = (text) => /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text));

/**
 * @param {Record<string, any>} manifest package.json
 * @param {string} lockedEngine the engine that the lock file has
 * @param {(path: string) => boolean} exists whether a file of the package exists
 * @returns {string[]}
 */
export function manifestProblems(manifest, lockedEngine, exists) {
  const { name, description, license, engines, bin = {}, exports = {} } = manifest;
  const targets = [...Object.values(bin), ...pathsIn(exports)].filter((path) => !exists(path));
  return [
    ...(manifest.private ? ['private is set: npm would refuse to publish it'] : []),
    ...(name === 'holdfast' ? [] : [`the name is ${name}`]),
    ...(description ? [] : ['there is no description']),
    ...(license === 'MIT' ? [] : [`the licence is ${license}, and LICENSE is MIT`]),
    ...(/^>=\d+\.\d+/.test(engines?.node ?? '')
      ? []
      : [`engines.node is ${engines?.node}: expected >=MAJOR.MINOR`]),
    ...(engines?.node === lockedEngine
      ? []
      : [`engines.node is ${engines?.node}, and the lock file has ${lockedEngine}`]),
    ...targets.map((path) => `${path} does not exist`),
  ];
}

/** @param {unknown} exports @returns {string[]} all paths in it */
function pathsIn(exports) {
  if (typeof exports === 'string') return [exports];
  return Object.values(exports ?? {}).flatMap(pathsIn);
}
