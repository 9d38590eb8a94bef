/*
 * The security group of a fleet in a region: who can reach the control port of its drones. A new one lets in nobody.
 */
import {
  AuthorizeSecurityGroupIngressCommand,
  CreateSecurityGroupCommand,
  DeleteSecurityGroupCommand,
  DescribeSecurityGroupsCommand,
  RevokeSecurityGroupIngressCommand,
} from '@aws-sdk/client-ec2';
import { codeOf } from '../../../lib/errors.js';
import { CONTROL_PORT } from './cloudinit.js';
import { TAG } from './region.js';

/** Instances that are ending still use the group. */
const IN_USE = new Set(['DependencyViolation', 'InvalidGroup.InUse']);
const EVERYBODY = new Set(['0.0.0.0/0', '::/0']);

/** @typedef {import('./region.js').Region} Region */
/** @typedef {import('@aws-sdk/client-ec2').SecurityGroup} SecurityGroup */
/** @typedef {import('@aws-sdk/client-ec2').IpPermission} IpPermission */

/** @param {Region} region */
const nameOf = ({ fleet }) => `${TAG}-${fleet}`;

/** @param {Region} region @returns {Promise<SecurityGroup | undefined>} */
async function find(region) {
  const Filters = [
    { Name: `tag:${TAG}`, Values: [region.fleet] },
    { Name: 'group-name', Values: [nameOf(region)] },
  ];
  const { SecurityGroups = [] } = await region.ask((client) =>
    client.send(new DescribeSecurityGroupsCommand({ Filters })),
  );
  return SecurityGroups[0];
}

/** @param {Region} region @returns {Promise<string>} its id */
async function make(region) {
  const command = new CreateSecurityGroupCommand({
    GroupName: nameOf(region),
    Description: `Drones of the Holdfast fleet ${region.fleet}`,
    TagSpecifications: [{ ResourceType: 'security-group', Tags: region.tags }],
  });
  const { GroupId = '' } = await region.ask((client) => client.send(command));
  return GroupId;
}

/**
 * Creates the group if there is none, and opens the control port to `from` and nobody else.
 * @param {Region} region
 * @param {string} from a CIDR; '' leaves it as it is
 * @returns {Promise<{ groupId: string, open: string[] }>} and who can reach it now
 */
export async function openControl(region, from) {
  const found = await find(region);
  const GroupId = found?.GroupId ?? (await make(region));
  const open = cidrsOf(found?.IpPermissions ?? []);
  if (from === '') return { groupId: GroupId, open };
  const others = open.filter((cidr) => cidr !== from).map(permissionOf);
  if (others.length > 0) {
    const command = new RevokeSecurityGroupIngressCommand({ GroupId, IpPermissions: others });
    await region.ask((client) => client.send(command));
  }
  if (!open.includes(from)) {
    const IpPermissions = [permissionOf(from)];
    const command = new AuthorizeSecurityGroupIngressCommand({ GroupId, IpPermissions });
    await region.ask((client) => client.send(command));
  }
  return { groupId: GroupId, open: [from] };
}

/**
 * @param {Region} region
 * @returns {Promise<boolean>} whether it is gone, which takes until all instances have ended
 */
export async function removeGroup(region) {
  const found = await find(region);
  if (!found) return true;
  try {
    await region.ask((client) => client.send(new DeleteSecurityGroupCommand({ GroupId: found.GroupId })));
    return true;
  } catch (error) {
    if (codeOf(error) === 'InvalidGroup.NotFound') return true;
    if (IN_USE.has(codeOf(error))) return false;
    throw error;
  }
}

/** @param {IpPermission[]} rules @returns {string[]} who can reach the control port */
function cidrsOf(rules) {
  const ours = rules.filter(({ FromPort, ToPort }) => FromPort === CONTROL_PORT && ToPort === CONTROL_PORT);
  return ours.flatMap(({ IpRanges = [], Ipv6Ranges = [] }) => [
    ...IpRanges.map(({ CidrIp = '' }) => CidrIp),
    ...Ipv6Ranges.map(({ CidrIpv6 = '' }) => CidrIpv6),
  ]);
}

/** @param {string} cidr @returns {IpPermission} */
function permissionOf(cidr) {
  const ranges = cidr.includes(':') ? { Ipv6Ranges: [{ CidrIpv6: cidr }] } : { IpRanges: [{ CidrIp: cidr }] };
  return { IpProtocol: 'tcp', FromPort: CONTROL_PORT, ToPort: CONTROL_PORT, ...ranges };
}

/** @param {string[]} open CIDRs @returns {string} a line for the user */
export function openLine(open) {
  const port = `control port ${CONTROL_PORT} of the drones`;
  if (open.length === 0) {
    const how =
      'to watch and control them from here, give --from with your own address, as in 203.0.113.7/32';
    return `${port} is open to nobody (the default): ${how}`;
  }
  const plain = 'it is plain HTTP, readable by everybody on the path';
  if (open.some((cidr) => EVERYBODY.has(cidr)))
    return `${port} is OPEN TO EVERYBODY: only the token protects it, and ${plain}; use --from with your own address`;
  return `${port} is open only to ${open.join(', ')}, with the token; ${plain}`;
}
