/*
 * What the rest of a drone needs to speak TLS.
 */
export { causeOf, connectSecurely } from './connect.js';
export { TLS_PARAMS } from './params.js';
export { securityOf } from './security.js';
