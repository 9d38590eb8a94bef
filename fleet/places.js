/*
 * Where drones run: the place that `--on` names.
 */
import { HoldfastError } from '../lib/errors.js';
import { hosts } from './on/hosts.js';
import { local } from './on/local.js';

/** @typedef {import('./ask.js').Member} Member */

/**
 * @typedef {object} Place
 * @property {(count: number, params: import('./texts.js').Texts) => Promise<Member[]>} start
 * @property {() => Promise<Member[]>} list
 * @property {(count: number | 'all') => Promise<number>} stop returns how many it ended
 * @property {(pending?: Promise<unknown>) => Promise<void>} close ends what must not outlive the command
 * @property {(member: Member) => boolean} [hasEnded] if that can be known
 * @property {() => Promise<void>} [release] lets what it started outlive the command
 */

/** @typedef {'local' | 'hosts' | 'ec2'} Kind */

/** @param {{ on?: string }} values of the options @returns {Kind} @throws {HoldfastError} BAD_OPTION */
export function kindOf({ on = '' }) {
  if (on === 'local' || on === 'ec2') return on;
  if (on.endsWith('.json')) return 'hosts';
  throw new HoldfastError(
    'BAD_OPTION',
    `--on got '${on}': expected local, ec2, or a file of hosts that ends with .json; see --help`,
  );
}

/**
 * @param {Record<string, any>} values of the options
 * @param {{ isOwn?: boolean, say?: (line: string) => void }} [how] isOwn: for the drones of one run
 * @returns {Promise<Place>}
 */
export async function openPlace(values, { isOwn = false, say = () => {} } = {}) {
  const kind = kindOf(values);
  if (kind === 'local') return local({ folder: values.folder, isOwn });
  if (kind === 'hosts') return hosts({ file: values.on, isOwn });
  return (await import('./on/ec2/ec2.js')).ec2(/** @type {any} */ ({ ...values, say }));
}
