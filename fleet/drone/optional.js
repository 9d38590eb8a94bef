/*
 * Topics of a hub, formats other than text and events, and TLS; null where they are not available: they are not sent to EC2, because
 * they don't fit into the user data.
 */

/** @type {typeof import('./topics/index.js') | null} */
export const topics = await import('./topics/index.js').catch(orNull);

/** @type {typeof import('./formats/index.js') | null} */
export const formats = await import('./formats/index.js').catch(orNull);

/** @type {typeof import('./tls/index.js') | null} */
export const tls = await import('./tls/index.js').catch(orNull);

/** @param {NodeJS.ErrnoException} error @returns {null} */
function orNull(error) {
  if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error;
  return null;
}
