/*
 * What `import … from 'holdfast'` imports; its types are in index.d.ts.
 */
export { MemoryBroker, openBroker } from './hub/brokers.js';
export { Hub } from './hub/index.js';
export { FORMATS } from './transport/formats.js';
export { Hold } from './transport/hold.js';
