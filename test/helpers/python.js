/*
 * Packages of PyPI for tests: `npm run prebuilt` installs one as well.
 */
export { pythonPackage } from '../../scripts/prebuilt/python.js';
