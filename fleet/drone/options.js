/*
 * The options of a drone that don't change while it runs.
 */
import { FLAG, integer, option, text } from '../../lib/options.js';

// biome-ignore format: a table reads best with one row per line
export const OPTIONS = [
  option('listen', 'listen', text('ADDRESS', 'an address of this machine'), '127.0.0.1', 'address of the control port; any address except loopback needs a token'),
  option('listen-port', 'listenPort', integer(0, 65_535), 8889, 'control port; 0 takes a free one'),
  option('control-token', 'controlToken', text('TEXT', 'a text'), '', 'token required to control the drone; safer in HOLDFAST_TOKEN, which process lists do not show'),
  option('register', 'register', text('DIR', 'a folder'), '', 'folder for a file with the address of the control port, kept while the drone runs'),
  option('quiet', 'quiet', FLAG, false, 'print no status each second'),
];
