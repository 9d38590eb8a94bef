/*
 * One region of EC2, as far as a fleet needs it: the newest image, and instances with the fleet's tag. Errors of AWS become
 * one line.
 */
import { randomUUID } from 'node:crypto';
import {
  DescribeImagesCommand,
  DescribeInstanceTypesCommand,
  DescribeRegionsCommand,
  EC2Client,
  paginateDescribeInstances,
  RunInstancesCommand,
  TerminateInstancesCommand,
} from '@aws-sdk/client-ec2';
import { codeOf, HoldfastError, messageOf } from '../../../lib/errors.js';

export const TAG = 'holdfast-fleet';
const MOST_ATTEMPTS = 10;
const MOST_TERMINATED_AT_ONCE = 100;
const PAGE = 1000;
const LIVE_STATES = ['pending', 'running', 'stopping', 'stopped'];
/** Errors that another region may not have: no capacity, or no such instance type. Not retried in this region. */
const REFUSALS = new Set([
  'InsufficientInstanceCapacity',
  'InsufficientHostCapacity',
  'InstanceLimitExceeded',
  'VcpuLimitExceeded',
  'MaxSpotInstanceCountExceeded',
  'Unsupported',
]);

// The SDK would warn about old Node.js versions with every command; the pinned version supports them.
process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= 'true';

/** @typedef {import('@aws-sdk/client-ec2').Instance} Instance */
/** @typedef {{ imageId: string, groupId: string, type: string, userData: Buffer }} Launch */

export class Region {
  /**
   * @param {string} name '' for the SDK's default
   * @param {{ fleet: string, endpoint?: string }} options
   */
  constructor(name, { fleet, endpoint }) {
    this.name = name;
    this.fleet = fleet;
    this.client = new EC2Client({
      ...(name && { region: name }),
      ...(endpoint && { endpoint }),
      retryMode: 'adaptive',
      maxAttempts: MOST_ATTEMPTS,
    });
    /** @type {Promise<void> | null} */
    this.limitedRetries = null;
  }

  /** @returns {Promise<string>} its name, from the AWS configuration if it wasn't given @throws {HoldfastError} NO_REGION */
  async resolve() {
    try {
      return await this.client.config.region();
    } catch {
      const line = 'no AWS region is configured: give --regions us-east-1,eu-west-1, or set AWS_REGION';
      throw new HoldfastError('NO_REGION', line);
    }
  }

  /** The SDK retries every server error, but one for lack of capacity won't go away. */
  async limitRetries() {
    const strategy = /** @type {any} */ (await this.client.config.retryStrategy());
    const refresh = strategy.refreshRetryTokenForRetry.bind(strategy);
    strategy.refreshRetryTokenForRetry = async (
      /** @type {unknown} */ token,
      /** @type {{ error?: Error }} */ failure,
    ) => {
      if (REFUSALS.has(failure.error?.name ?? '')) throw failure.error;
      return refresh(token, failure);
    };
  }

  /**
   * @template T
   * @param {(client: EC2Client) => Promise<T>} call
   * @returns {Promise<T>}
   * @throws {HoldfastError} NO_CREDENTIALS, or the code of AWS
   */
  async ask(call) {
    this.limitedRetries ??= this.limitRetries();
    await this.limitedRetries;
    try {
      return await call(this.client);
    } catch (error) {
      throw translate(error, this.name);
    }
  }

  /** @returns {Promise<string[]>} the names of all regions that the account has enabled */
  async all() {
    const { Regions = [] } = await this.ask((client) => client.send(new DescribeRegionsCommand({})));
    return Regions.map(({ RegionName = '' }) => RegionName).sort();
  }

  /** @param {string} type @returns {Promise<string>} the newest Amazon Linux 2023 that runs on it */
  async newestImage(type) {
    const { InstanceTypes = [] } = await this.ask((client) =>
      client.send(
        new DescribeInstanceTypesCommand({
          InstanceTypes: [/** @type {import('@aws-sdk/client-ec2')._InstanceType} */ (type)],
        }),
      ),
    );
    const processors = InstanceTypes[0]?.ProcessorInfo?.SupportedArchitectures ?? [];
    const architecture = processors.includes('arm64') ? 'arm64' : 'x86_64';
    const name = `al2023-ami-2023.*-kernel-6.1-${architecture}`;
    const Filters = [
      { Name: 'name', Values: [name] },
      { Name: 'state', Values: ['available'] },
    ];
    const { Images = [] } = await this.ask((client) =>
      client.send(new DescribeImagesCommand({ Owners: ['amazon'], Filters })),
    );
    const dates = Images.map(({ CreationDate = '', ImageId = '' }) => ({ CreationDate, ImageId }));
    const newest = dates.sort((a, b) => b.CreationDate.localeCompare(a.CreationDate)).at(0);
    if (newest) return newest.ImageId;
    throw new HoldfastError(
      'NO_IMAGE',
      `ec2 in ${this.name}: found no image named ${name}; give one with --ami`,
    );
  }

  get tags() {
    return [
      { Key: TAG, Value: this.fleet },
      { Key: 'Name', Value: `holdfast-drone-${this.fleet}` },
    ];
  }

  /**
   * Starts as many as there is capacity for: all, or half of them, or a quarter …
   * @param {number} count @param {Launch} launch
   * @returns {Promise<{ instances: Instance[], refusal: string }>} refusal: why not more
   */
  async run(count, launch) {
    let refusal = '';
    for (let wanted = count; wanted > 0; wanted = Math.floor(wanted / 2)) {
      try {
        return { instances: await this.runExactly(wanted, launch), refusal };
      } catch (error) {
        if (!REFUSALS.has(codeOf(error))) throw error;
        refusal = messageOf(error);
      }
    }
    return { instances: [], refusal };
  }

  /** @param {number} count @param {Launch} launch @returns {Promise<Instance[]>} */
  async runExactly(count, { imageId, groupId, type, userData }) {
    const command = new RunInstancesCommand({
      ClientToken: randomUUID(), // so that a repeated request starts nothing twice
      MinCount: count,
      MaxCount: count,
      ImageId: imageId,
      InstanceType: /** @type {import('@aws-sdk/client-ec2')._InstanceType} */ (type),
      SecurityGroupIds: [groupId],
      UserData: userData.toString('base64'),
      InstanceInitiatedShutdownBehavior: 'terminate',
      MetadataOptions: { HttpTokens: 'required', HttpPutResponseHopLimit: 1 },
      TagSpecifications: [
        { ResourceType: 'instance', Tags: this.tags },
        { ResourceType: 'volume', Tags: this.tags },
      ],
    });
    const { Instances = [] } = await this.ask((client) => client.send(command));
    return Instances;
  }

  /** @returns {Promise<Instance[]>} the existing instances of this fleet, newest first */
  async instances() {
    const Filters = [
      { Name: `tag:${TAG}`, Values: [this.fleet] },
      { Name: 'instance-state-name', Values: LIVE_STATES },
    ];
    /** @type {Instance[]} */
    const found = [];
    await this.ask(async (client) => {
      for await (const { Reservations = [] } of paginateDescribeInstances(
        { client, pageSize: PAGE },
        { Filters },
      ))
        found.push(...Reservations.flatMap(({ Instances = [] }) => Instances));
    });
    return found.filter((instance) => this.owns(instance)).sort((a, b) => startOf(b) - startOf(a));
  }

  /** Checks the tag again, as instances found may be ended. @param {Instance} instance */
  owns({ Tags = [] }) {
    return Tags.some(({ Key, Value }) => Key === TAG && Value === this.fleet);
  }

  /** @param {Instance[]} instances */
  async terminate(instances) {
    const ids = instances.map(({ InstanceId = '' }) => InstanceId);
    for (let i = 0; i < ids.length; i += MOST_TERMINATED_AT_ONCE) {
      const InstanceIds = ids.slice(i, i + MOST_TERMINATED_AT_ONCE);
      await this.ask((client) => client.send(new TerminateInstancesCommand({ InstanceIds })));
    }
  }

  close() {
    this.client.destroy();
  }
}

/** @param {Instance} instance @returns {number} ms */
export function startOf({ LaunchTime }) {
  return LaunchTime?.getTime() ?? 0;
}

/** @param {unknown} error @param {string} region @returns {HoldfastError} */
function translate(error, region) {
  const name = error instanceof Error ? error.name : '';
  if (name === 'CredentialsProviderError' || name === 'CredentialsError') {
    const how = 'set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or log in with the AWS CLI';
    const line = `no AWS credentials: ${how}; --dry-run needs none`;
    return new HoldfastError('NO_CREDENTIALS', line);
  }
  return new HoldfastError(name || 'EC2', `ec2 in ${region}: ${messageOf(error)} (${name})`);
}
