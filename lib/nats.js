/*
 * What is known about NATS without connecting to it. Pure.
 */

/** @param {unknown} text @returns {text is string} whether it is the URL of a server */
export function isNatsUrl(text) {
  if (typeof text !== 'string' || !/^(nats|tls):\/\/./.test(text) || !URL.canParse(text)) return false;
  const { username, password } = new URL(text);
  return [username, password].every(isEncoded);
}

/** @param {string} text of a URL */
function isEncoded(text) {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

/** A name that can also be a part of a subject. @param {unknown} text @returns {text is string} */
export function isStreamName(text) {
  return typeof text === 'string' && /^[\w-]{1,64}$/.test(text);
}
