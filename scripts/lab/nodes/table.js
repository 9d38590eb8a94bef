/*
 * From the findings about nodes to their page. Pure.
 */
import { formatCount } from '../../../lib/format.js';
import { figure } from '../figures.js';
import { markdownTable, summaryText } from '../text.js';

/** @typedef {import('../findings.js').Findings} Findings */

/** @type {Record<string, string>} */
export const RUNS = {
  one: 'one node without NATS, with the memory broker',
  nats: 'two nodes and one server of NATS: published at one node, the clients are at the other',
  'nats-3': 'the same with three servers of NATS, which all keep every publication, on the same machine',
};

export const FIGURES = [
  figure('latencyP50Ms', 'publish to first byte at the client, p50', 'ms'),
  figure('latencyP99Ms', 'publish to first byte at the client, p99', 'ms'),
  figure('singleRate', 'publications per second, one per request', '1/s'),
  figure('singleUs', 'CPU of all nodes for a publication, one per request', 'µs'),
  figure('singleNatsUs', 'CPU of NATS for a publication, one per request', 'µs'),
  figure('batchRate', 'publications per second, in batches', '1/s'),
  figure('batchUs', 'CPU of all nodes for a publication, in batches', 'µs'),
  figure('batchNatsUs', 'CPU of NATS for a publication, in batches', 'µs'),
  figure('catchUpMs', 'until a node that was stopped has caught up', 'ms'),
  figure('afterOutageMs', 'from the start of NATS after an outage until a publication has arrived', 'ms'),
];

/** @param {Findings} findings @returns {string} in Markdown */
export function tableText(findings) {
  const rows = findings.figures.map(({ name, text, unit }) => [
    text,
    ...findings.runs.map((run) => summaryText(findings.of(name, run), unit)),
  ]);
  return markdownTable(['figure', ...findings.runs], rows);
}

/** @param {import('../report.js').Report} report @param {Findings} findings @returns {string} docs/nodes.md */
export function pageText({ plan, facts, command, notes }, findings) {
  const runs = Object.entries(RUNS).filter(([name]) => findings.runs.includes(name));
  return `# Several nodes on NATS, next to one without

Measured in turn with the same clients; ${plan.repeats} ${plan.repeats === 1 ? 'round' : 'rounds'}. Each cell shows the median, and in brackets the
smallest and the largest value. Written by \`${command}\`; every single value is in [nodes.json](nodes.json).

${facts.machine}

${tableText(findings)}

The runs:

${runs.map(([name, text]) => `- **${name}**: ${text}`).join('\n')}

- A node is \`server.js\` with one worker. Nodes, NATS, publishers and clients share the machine, so rates are those of all of them together.
- ${formatCount(plan.streams)} streams, each with its own topic. Publications are numbered, and clients check that each arrives once and in order;
  otherwise there is no report. Batches have 100 publications. Latency is measured at 1,000 publications per second.
- CPU is that of all processes, minus what they use when idle.
- A node that catches up was stopped with SIGSTOP while 1,000 publications per second were made. In an outage, all servers of NATS
  are killed and started again, while a publisher sends the same publication again and again. Both take ${plan.holdS / 2} s.
${notes.map((note) => `- ${note}.\n`).join('')}`;
}
