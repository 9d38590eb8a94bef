/*
 * The chart of the run with as many streams as possible: who has the memory.
 */
import { formatCount } from '../../../lib/format.js';
import { svgOf } from '../../plot/picture.js';
import { barSpec } from '../bars.js';
import { valueText } from '../text.js';

const CHART = 'memory.svg';
const GIGA = 1e9;

/** @param {import('../findings.js').Findings} findings @returns {Promise<Record<string, string>>} SVGs by name; none without figures */
export async function memoryChart(findings) {
  const [run] = findings.runs;
  const value = (/** @type {string} */ name) => findings.of(name, run)?.median ?? null;
  const held = value('held') ?? 0;
  const each = (/** @type {string} */ name, ends = 1) => {
    const bytes = value(name);
    return bytes === null ? null : bytes * held * ends;
  };
  const parts = [
    { name: 'in use before', bytes: value('idleUsedBytes') },
    { name: 'kernel, both ends of each stream', bytes: each('kernelBytes', 2) },
    { name: 'server', bytes: each('userBytes') },
    { name: 'clients', bytes: each('dronesBytes') },
    { name: 'left', bytes: value('leftBytes') },
  ];
  const bars = parts.flatMap(({ name, bytes }, color) => {
    if (bytes === null) return [];
    const gigabytes = bytes / GIGA;
    return [
      { name, value: gigabytes, least: gigabytes, most: gigabytes, label: valueText(bytes, 'bytes'), color },
    ];
  });
  if (held === 0 || bars.length === 0) return {};
  const title = 'Who has the memory';
  const subtitle = [`${formatCount(held)} streams, with their clients on the machine`];
  return { [CHART]: await svgOf(barSpec({ title, subtitle, axis: 'GB', panels: [{ title: '', bars }] })) };
}
