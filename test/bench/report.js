/*
 * From the figures of the benchmark to its table. Pure.
 */

/**
 * What is compared, and what hold must reach: `ratio` to the floor, or `most` by itself. `scale` is how many of the
 * unit of the figure are one of the unit that is shown.
 */
// biome-ignore format: a table reads best with a row a line
const ROWS = [
  { name: 'memoryBytes', text: 'user memory a stream', unit: 'B', digits: 0, most: 100 },
  { name: 'openUs', text: 'CPU to open a stream', unit: 'µs', digits: 1, ratio: 1.4 },
  { name: 'pingUs', text: 'CPU of a ping', unit: 'µs', digits: 1, ratio: 1.15 },
  { name: 'deliveryUs', text: 'CPU of a delivery, 64 bytes to all', unit: 'µs', digits: 1, ratio: 1.15 },
  { name: 'manyPssBytes', text: 'memory of the server in all, at 60,000 streams', unit: 'MB', digits: 0, scale: 1e6, most: 220 },
  { name: 'busyTickP99Ms', text: 'JS tick p99, all pinged every 5 s and fanned out to', unit: 'ms', digits: 1, most: 11 },
  { name: 'busyTickMaxMs', text: 'JS tick max, likewise', unit: 'ms', digits: 1, most: 20 },
  { name: 'stormTickP99Ms', text: 'JS tick p99, while 15,000 open as fast as they can', unit: 'ms', digits: 1, most: 15 },
];

/**
 * @typedef {object} Row
 * @property {string} name
 * @property {string} text
 * @property {string} unit
 * @property {Record<string, { value: number, least: number, most: number } | null>} values by kind of server
 * @property {number | null} ratio of hold to the floor
 * @property {string} target
 * @property {boolean} isMet
 */

/**
 * @param {Record<string, Record<string, number[]>>} figures by kind and name, one of each run
 * @param {(values: number[]) => number} medianOf
 * @returns {Row[]}
 */
export function rowsOf(figures, medianOf) {
  return ROWS.map(({ name, text, unit, most, ratio: mostRatio, scale = 1 }) => {
    const summary = (/** @type {string} */ kind) => {
      const all = figures[kind][name]?.map((value) => value / scale);
      if (!all) return null;
      const [least, greatest] = [Math.min(...all), Math.max(...all)];
      return { value: medianOf(all), least, most: greatest };
    };
    const values = { floor: summary('floor'), http: summary('http'), hold: summary('hold') };
    const hold = values.hold?.value ?? Number.NaN;
    const ratio = mostRatio && values.floor ? hold / values.floor.value : null;
    return {
      name,
      text,
      unit,
      values,
      ratio,
      target: mostRatio ? `${mostRatio} x floor` : `${most} ${unit}`,
      isMet: mostRatio ? ratio !== null && ratio <= mostRatio : hold <= Number(most),
    };
  });
}

/**
 * @param {Row[]} rows
 * @param {{ machine: string, repeats: number, high: number, low: number, disturbed: string }} run
 * @returns {string} in Markdown
 */
export function tableOf(rows, { machine, repeats, high, low, disturbed }) {
  const cell = (/** @type {Row} */ { name, values, unit }, /** @type {string} */ kind) => {
    const value = values[kind];
    if (!value) return '';
    const digits = ROWS.find((row) => row.name === name)?.digits ?? 0;
    const shown = (/** @type {number} */ number) => number.toFixed(digits);
    return `${shown(value.value)} ${unit} (${shown(value.least)} to ${shown(value.most)})`;
  };
  const lines = rows.map((row) => {
    const ratio = row.ratio === null ? '' : row.ratio.toFixed(2);
    const columns = [row.text, cell(row, 'floor'), cell(row, 'http'), cell(row, 'hold'), ratio];
    return `| ${columns.join(' | ')} | ${row.target}: ${row.isMet ? 'reached' : '**missed**'} |`;
  });
  return `# The native transport beside the plain one and a bare epoll loop

${repeats} runs of each in turn, with the same client; medians, and in brackets the least and the most. Written by
\`npm run bench\`; each figure of each run is in [bench.json](bench.json).

${machine}

| figure | floor | http | hold | hold / floor | to reach |
|---|---|---|---|---|---|
${lines.join('\n')}

The floor ([bare/src/bin/floor.rs](../scripts/lab/bare/src/bin/floor.rs)) accepts, answers, keeps the descriptor and sends, in one thread, with no
check of anything. The others are \`server.js\` with two workers. All streams listen to one channel.

- Memory is PSS of all processes of the server: how much it grew from ${low} to ${high} streams of a server that never had
  more but had ${low} some times before, whose garbage is collected every second, each time after 12 s of rest.
- CPU is the run time of all threads of the server, less what it used while idle. Openings are those from ${low} to
  ${high} streams, as fast as the client can, in a server that has opened and closed as many before: JS gets faster as
  it runs. Pings are two a second to each of ${high}.
- Ticks are of 10 ms, of the worker that has the worse ones: p99 second by second, max that of each run. On each core
  a thread of the highest priority watches the machine itself; seconds in which it was held up for more than 2 ms are
  left out (${disturbed}).
`;
}
