/*
 * The runs of npm run million: one experiment each.
 */

/**
 * @typedef {object} MillionRun
 * @property {string} flag '' for the run without one
 * @property {string} experiment
 * @property {string} help
 */

// biome-ignore format: a table reads best with a row a line
/** @type {MillionRun[]} */
export const RUNS = [
  { flag: '', experiment: 'million', help: '' },
  { flag: 'tls', experiment: 'million-tls', help: 'streams over TLS 1.3' },
  { flag: 'rooms', experiment: 'million-rooms', help: 'publications to rooms and to single streams, as fast as they stay on time' },
  { flag: 'broadcast', experiment: 'million-broadcast', help: 'one publication to everyone' },
  { flag: 'handover', experiment: 'million-handover', help: 'new servers take over all streams' },
  { flag: 'storm', experiment: 'million-storm', help: 'a third of the clients is cut off, and comes back for what it missed' },
  { flag: 'ceiling', experiment: 'ceiling', help: 'as many streams as the machine can hold' },
  { flag: 'nodes', experiment: 'million-nodes', help: 'three servers on NATS, and one of them is killed' },
];

/** The page of a run: of its full size, or of its small one. @param {MillionRun} run @param {boolean} isSmall */
export function pageOf({ flag }, isSmall) {
  if (isSmall) return `docs/bench/${flag || 'million'}.md`;
  return flag ? `docs/million/${flag}.md` : 'docs/million.md';
}
