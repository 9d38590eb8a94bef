/*
 * Writes docs/grafana.json: node scripts/grafana.js
 */
import { writeFileSync } from 'node:fs';
import { dashboardOf } from './grafana/dashboard.js';
import { ROWS } from './grafana/panels.js';

const FILE = new URL('../docs/grafana.json', import.meta.url);

if (process.argv.length > 2) {
  process.stderr.write('grafana: it takes no arguments: node scripts/grafana.js writes docs/grafana.json\n');
  process.exit(1);
}
writeFileSync(FILE, `${JSON.stringify(dashboardOf(ROWS), null, 2)}\n`);
