/*
 * From the findings about memcached to the tables and the page. Pure.
 */
import { formatCount } from '../../../lib/format.js';
import { markdownTable, summaryText, valueText } from '../text.js';
import { BATCHES, CONNECTIONS, cellText, KEY_CONNECTIONS, keyCell, nameOf, OPS, STEPS } from './cells.js';
import { ALL_CORES, measured, ONE_CORE } from './charts.js';
import { isClientLimited, medianOf } from './limits.js';
import { FEW_ITEMS, ITEMS, KEYS, VALUE_SIZE } from './measure.js';
import { NAMES, subjects } from './subjects.js';
import { gainsOf, signed, splitOf, targetTable } from './targets.js';

/** @typedef {import('../findings.js').Findings} Findings */
/** @typedef {import('./cells.js').Cell} Cell */
/** @typedef {import('./subjects.js').Subject} Subject */

/** @param {Findings} findings @param {boolean} isPinned @returns {string} a row per server and batch, a column per number of connections */
function rateTable(findings, isPinned) {
  const rows = OPS.flatMap((op) =>
    BATCHES.flatMap((batch) =>
      measured(findings)
        .filter((subject) => subject.isPinned === isPinned)
        .map(({ name, title }) => [
          op,
          String(batch),
          title,
          ...CONNECTIONS.map((connections) => rateText(findings, name, { op, batch, connections })),
        ])
        .filter((row) => row.slice(3).some((cell) => cell !== '')),
    ),
  );
  return markdownTable(['', 'batch', 'requests per second, connections:', ...CONNECTIONS.map(String)], rows);
}

/** @param {Findings} findings @param {string} run @param {Cell} cell */
function rateText(findings, run, cell) {
  const rate = medianOf(findings, run, cell, 'rate');
  if (rate === null) return '';
  return `${formatCount(rate)}${isClientLimited(findings, run, cell) ? ' *' : ''}`;
}

/** @param {Findings} findings @param {'get' | 'set'} op @param {number} batch @returns {string} everything about the cell with 50 connections */
function detailTable(findings, op, batch) {
  const cell = { ...keyCell(op), batch };
  const parts = /** @type {const} */ (['rate', 'us', 'p50', 'p99', 'server', 'client']);
  const rows = measured(findings).map(({ name, title, isPinned }) => {
    const split = splitOf(findings, name, cell);
    const [rate, us, ...rest] = parts.map((part) => {
      const figure = nameOf(cell, part);
      const { unit } = findings.figure(figure);
      const summary = findings.of(figure, name);
      if (!summary) return '';
      return part === 'rate' || part === 'us' ? summaryText(summary, unit) : valueText(summary.median, unit);
    });
    return [
      isPinned ? title : `${title}, all cores`,
      rate,
      us,
      split ? valueText(split.kernel, 'µs') : '',
      ...rest,
    ];
  });
  const head = [
    'server',
    'requests per second',
    'CPU per request',
    'of which kernel',
    'p50',
    'p99',
    'CPU of the server',
    'CPU of the client',
  ];
  return markdownTable(
    head,
    rows.filter(([, rate]) => rate !== ''),
  );
}

/** @param {Findings} findings @returns {string} what each step gained */
function stepTable(findings) {
  const gains = OPS.map((op) => gainsOf(findings, keyCell(op)));
  const rows = measured(findings).flatMap(({ name, title, text }) => {
    const found = gains.map((all) => all.find(({ run }) => run === name));
    if (found.every((one) => !one)) return [];
    const cells = found.map((one, i) => {
      if (!one) return '';
      const isFirst = gains[i][0] === one;
      return `${valueText(one.rate, '1/s')}${isFirst ? '' : ` (${signed(one.gain)})`}`;
    });
    return [[title, text.replace(/^step \d+, [^:]*: /, ''), ...cells]];
  });
  return markdownTable(['step', 'what changed', ...OPS], rows);
}

/** @param {Findings} findings @returns {string} what nodecached's own profiler says; '' if it was not measured */
function profileTable(findings) {
  const rows = Object.entries(STEPS).flatMap(([step, text]) => {
    const found = OPS.map((op) => findings.of(`${op}-step-${step}`, NAMES.nodecached));
    if (found.every((one) => !one)) return [];
    return [[step, text, ...found.map((one) => (one ? `${one.median.toFixed(2)} µs` : ''))]];
  });
  if (rows.length === 0) return '';
  const table = markdownTable(['step', 'what it is', ...OPS.map((op) => `per ${op}`)], rows);
  return `## The steps of a request in nodecached

As \`nodecached --profile\` measures them: the median of a step times how often it occurs in a request, with ${KEY_CONNECTIONS} connections and one request at a time. A chunk contains everything
else, and a request all steps between it and the write.

${table}

`;
}

/** @param {Findings} findings @returns {string} */
function memoryTable(findings) {
  const rows = measured(findings)
    .filter(({ name }) => findings.of('itemBytes', name))
    .map(({ name, title }) => [
      title,
      ...['itemBytes', 'statsBytes'].map((figure) => {
        const found = findings.of(figure, name);
        return found ? valueText(found.median, 'bytes') : 'not counted';
      }),
    ]);
  return markdownTable(['server', 'memory per item', 'as the server counts it'], rows);
}

/** @param {import('../report.js').Report} report @param {Findings} findings @returns {string} docs/memcached.md */
export function pageText({ plan, facts, command, notes, sentences, charts }, findings) {
  const names = measured(findings).map(({ name, title, text }) => `- **${title}** (\`${name}\`): ${text}`);
  return `# nodecached next to memcached

How fast is a memcached in Node ([examples/nodecached](../examples/nodecached)), next to memcached itself? ${plan.repeats} ${plan.repeats === 1 ? 'round' : 'rounds'}; each
figure is a median, in brackets with the smallest and the largest value. Written by \`${command}\`; every single value is in
[memcached.json](memcached.json).

${facts.machine}

${targetTable(findings)}

${sentences.map((sentence) => `- ${sentence}`).join('\n')}

${charts.map((chart) => `![${chart.replace(/^.*\/|\.svg$/g, '')}](${encodeURI(chart)})`).join('\n\n')}

## The steps from the obvious server to nodecached

${KEY_CONNECTIONS} connections, one request at a time; in brackets: compared with the step before.

${stepTable(findings)}

${profileTable(findings)}## ${KEY_CONNECTIONS} connections

${OPS.flatMap((op) => BATCHES.map((batch) => `${cellText({ ...keyCell(op), batch })}:\n\n${detailTable(findings, op, batch)}`)).join('\n\n')}

## Every number of connections

With ${ONE_CORE}:

${rateTable(findings, true)}

With ${ALL_CORES}:

${rateTable(findings, false)}

\\* The client was the limit: it used its whole core, and the server did not.

## Memory

${memoryTable(findings)}

## Method

${names.join('\n')}

${methodText(plan)}
${notes.map((note) => `- ${note}.\n`).join('')}`;
}

/** @param {import('../plan.js').Plan} plan */
function methodText({ holdS }) {
  return `- All servers run at the same time and take turns at each cell of the tables, so that whatever changes on the machine affects all of them
  alike. Before that, each is given the keys, and answers gets and sets for a while, because JS gets faster as it runs. With
  ${KEY_CONNECTIONS} connections and one request at a time, a measurement takes ${holdS} s, otherwise a third of it.
- The client is [fleet/generator](../fleet/generator/src/main.rs), a native program with one thread, which checks every answer byte for byte. A connection sends its next
  request, or the next batch, when everything before is answered; the wrong values of the server that does nothing cost it a little more; a latency counts from when the batch was sent.
- Keys are chosen at random from ${formatCount(KEYS)}, values have ${VALUE_SIZE} bytes.
- The server has the first core and the client the second; with all cores, nothing is pinned, and the client takes CPU that the server
  could have used. A ratio says "at most" or "at least" if the client was the limit on one side of it. CPU is the run time of all threads of the server; the kernel's part is from /proc/PID/stat, which has steps of 10 ms.
- Memory per item is the growth of the server's memory (PSS) from ${formatCount(FEW_ITEMS)} to ${formatCount(ITEMS)} items with keys of 12 bytes and values of ${VALUE_SIZE},
  half a second later: with Node it contains garbage that was not collected yet. What servers count themselves differs: memcached and
  nodecached count items, redis everything.`;
}
