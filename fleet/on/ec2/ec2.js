/*
 * Drones on EC2: instances in one or several regions that carry the fleet's tag. There is no other record: whatever has
 * the tag is the fleet.
 */
import { codeOf, messageOf } from '../../../lib/errors.js';
import { formatCount, formatNoun } from '../../../lib/format.js';
import { spread } from '../../spread.js';
import { CONTROL_PORT, userData } from './cloudinit.js';
import { choose, endAll, removeGroups } from './ending.js';
import { openControl, openLine } from './firewall.js';
import { launchAll } from './launch.js';
import { checkParams, checkToken, imagesFor } from './options.js';
import { estimateLine } from './prices.js';
import { Region, startOf, TAG } from './region.js';

export { OPTIONS } from './options.js';

/** How long `stop` waits for instances to end. */
const ENDING_MS = 300_000;

/**
 * @typedef {object} Ec2Options
 * @property {'auto' | string[]} regions
 * @property {string} instanceType
 * @property {'newest' | string[]} [ami] one for each region
 * @property {string} name of the fleet
 * @property {'nobody' | string} [from] a CIDR
 * @property {boolean} [isPrivate]
 * @property {boolean} [dryRun]
 * @property {string} token
 * @property {string} [endpoint] of EC2, if not that of AWS
 * @property {number} [endingMs]
 * @property {(line: string) => void} say
 */

/** @typedef {import('./launch.js').Found} Found */

/**
 * A drone that can be asked at `${url}/` once it runs. Until it has an address, url is ''.
 * @typedef {object} Member
 * @property {string} name
 * @property {string} url
 * @property {string} token
 * @property {string} place
 * @property {'pending' | 'running'} state of the instance; its drone starts a minute or two later
 * @property {string} launchedAt
 */

/** @param {Ec2Options} options */
export function ec2(options) {
  return new Ec2(options);
}

class Ec2 {
  /** @param {Ec2Options} options */
  constructor(options) {
    this.options = { ami: 'newest', from: 'nobody', dryRun: false, endingMs: ENDING_MS, ...options };
    /** @type {Map<string, Region>} */
    this.regions = new Map();
    /** Those the account has no permission for. @type {Set<Region>} */
    this.forbidden = new Set();
  }

  /** @param {string} name '' for the SDK's default @returns {Region} */
  region(name) {
    const { name: fleet, endpoint } = this.options;
    const region = this.regions.get(name) ?? new Region(name, { fleet, endpoint });
    this.regions.set(name, region);
    return region;
  }

  /** @returns {Promise<Region[]>} where instances start */
  async own() {
    const { regions } = this.options;
    if (regions !== 'auto') return regions.map((name) => this.region(name));
    return [this.region(await this.region('').resolve())];
  }

  /** @returns {Promise<Region[]>} where instances are searched: all of the account unless --regions is given */
  async searched() {
    const own = await this.own();
    if (this.options.regions !== 'auto') return own;
    return (await own[0].all()).map((name) => this.region(name));
  }

  /**
   * @param {number} count 0: only opens the control port for `from`
   * @param {import('../../texts.js').Texts} params of each drone
   * @returns {Promise<Member[]>} the new ones
   */
  async start(count, params) {
    const { dryRun, token, instanceType, ami, say } = this.options;
    const { n } = checkParams(params);
    if (!dryRun) checkToken(token);
    const regions = await this.own();
    const images = imagesFor(
      regions.map(({ name }) => name),
      /** @type {'newest' | string[]} */ (ami),
    );
    if (dryRun) return this.rehearse(count, n, regions, images);
    const user = userData(params, token);
    const prepared = await Promise.all(
      regions.map(async (region, i) => {
        const imageId = images[i] ?? (await region.newestImage(instanceType));
        const { groupId, open } = await this.open(region);
        return { region, launch: { imageId, groupId, type: instanceType, userData: user }, open };
      }),
    );
    say(openLine([...new Set(prepared.flatMap(({ open }) => open))]));
    const started = await launchAll(count, prepared, say);
    return started.map((found) => this.memberOf(found));
  }

  /** @param {Region} region */
  open(region) {
    const { from } = this.options;
    return openControl(region, from === 'nobody' ? '' : from);
  }

  /**
   * Prints what `start` would do, without contacting AWS.
   * @param {number} count @param {number} n streams each @param {Region[]} regions @param {(string | undefined)[]} images
   * @returns {never[]}
   */
  rehearse(count, n, regions, images) {
    const { instanceType, name, from, say } = this.options;
    const streams = `${formatNoun(n, 'stream')} each (${formatCount(n * count)})`;
    say(`dry run: fleet '${name}' would start ${formatCount(count)} x ${instanceType} with ${streams}`);
    for (const [i, share] of spread(count, regions.length).entries())
      say(
        `  ${regions[i].name}: ${formatCount(share)} x ${instanceType}, ${images[i] ?? 'newest Amazon Linux 2023'}`,
      );
    say(openLine(from === 'nobody' ? [] : [from]));
    say(estimateLine(instanceType, count));
    return [];
  }

  /** @returns {Promise<Member[]>} */
  async list() {
    if (this.options.dryRun) return [];
    const isUp = (/** @type {Found} */ { instance }) =>
      ['pending', 'running'].includes(instance.State?.Name ?? '');
    return (await this.find()).filter(isUp).map((found) => this.memberOf(found));
  }

  /** @returns {Promise<Found[]>} instances that exist */
  async find() {
    const regions = await this.searched();
    const all = await Promise.all(
      regions.map(async (region) => {
        const instances = await region.instances().catch((error) => this.overlook(region, error));
        return instances.map((instance) => ({ region, instance }));
      }),
    );
    return all.flat();
  }

  /**
   * Accounts often have no permission for some regions, which doesn't matter unless they were named.
   * @param {Region} region @param {unknown} error @returns {never[]}
   */
  overlook(region, error) {
    if (this.options.regions !== 'auto' || codeOf(error) !== 'UnauthorizedOperation') throw error;
    this.forbidden.add(region);
    this.options.say(`${messageOf(error)}; skipping this region`);
    return [];
  }

  /** @param {Found} found @returns {Member} */
  memberOf({ region, instance }) {
    const { isPrivate, token } = this.options;
    const address = (isPrivate ? instance.PrivateIpAddress : instance.PublicIpAddress) ?? '';
    return {
      name: instance.InstanceId ?? '',
      url: address && `http://${address}:${CONTROL_PORT}`,
      token,
      place: region.name,
      state: address && instance.State?.Name === 'running' ? 'running' : 'pending',
      launchedAt: new Date(startOf(instance)).toISOString(),
    };
  }

  /**
   * Ends instances of this fleet, newest first, and in the regions that have most. Where none is left, the security group
   * is removed too.
   * @param {number | 'all'} count
   * @returns {Promise<number>} how many it ended
   */
  async stop(count) {
    const { dryRun, name, endingMs, say } = this.options;
    if (dryRun) {
      say(`dry run: would end ${count} of the instances tagged ${TAG}=${name}`);
      return 0;
    }
    const living = await this.find();
    const chosen = count === 'all' ? living : choose(living, count);
    await endAll(chosen, endingMs);
    const kept = new Set(living.filter((found) => !chosen.includes(found)).map(({ region }) => region));
    const looked = count === 'all' ? await this.searched() : chosen.map(({ region }) => region);
    const empty = [...new Set(looked)].filter((region) => !kept.has(region) && !this.forbidden.has(region));
    await removeGroups(empty, endingMs, say);
    return chosen.length;
  }

  /** The instances keep running. */
  async close() {
    for (const region of this.regions.values()) region.close();
  }
}
