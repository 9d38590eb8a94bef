/*
 * Topics of a hub and TLS, where they are available: they are not sent to EC2, because they don't fit into the user data.
 */

/** @type {typeof import('./topics/index.js') | null} */
export const topics = await import('./topics/index.js').catch((error) => {
  if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error;
  return null;
});
