/*
 * What the hub calls itself in OAuth: its resource identifier, and the document about it. Pure. RFC 9728; RFC 9068, section 4.
 *
 * The identifier is --jwt-audience. Without it, it is the URL of the hub at the Host of the request. The client chooses that
 * Host, so this only keeps out tokens that were meant for another hub by mistake; it doesn't stop someone who has a token for
 * another service with the same keys. That is why --jwks-url should come with --jwt-audience.
 */
import { isLocalHost } from '../../lib/local.js';
import { DETAIL_TYPE } from './grants.js';

const METADATA_PATH = '/.well-known/oauth-protected-resource';
const HOST = /^(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?$/i;

export class Resource {
  /** @param {{ audience: string, hubPath: string }} options audience: '' if it is not fixed */
  constructor({ audience, hubPath }) {
    this.audience = audience;
    this.hubPath = hubPath;
    this.metadataPath = METADATA_PATH + hubPath;
    this.origin = URL.canParse(audience) ? originOf(new URL(audience)) : '';
  }

  /** @param {string | undefined} host @returns {string} the identifier; '' if the Host is malformed */
  idFor(host) {
    if (this.audience) return this.audience;
    const origin = originAt(host);
    return origin && origin + this.hubPath;
  }

  /** @param {string | undefined} host @returns {string} where the document is; '' if it can't be said */
  metadataUrlFor(host) {
    const origin = this.audience ? this.origin : originAt(host);
    return origin && origin + this.metadataPath;
  }

  /**
   * @param {readonly string[]} audiences of a token
   * @param {string | undefined} host
   * @returns {boolean} whether one is the URL of the hub at this Host, behind a proxy with TLS or not
   */
  isOneOf(audiences, host) {
    if (host === undefined || !HOST.test(host)) return false;
    const path = host.toLowerCase() + this.hubPath;
    return audiences.includes(`https://${path}`) || audiences.includes(`http://${path}`);
  }

  /**
   * The document, for clients that look for a way in.
   * @param {{ host: string | undefined, issuer: string, cookie: string, hasSubscriptions: boolean }} about
   * @returns {Record<string, unknown> | null} null if the Host is malformed
   */
  metadata({ host, issuer, cookie, hasSubscriptions }) {
    const resource = this.idFor(host);
    if (!resource) return null;
    return {
      resource,
      ...(URL.canParse(issuer) ? { authorization_servers: [issuer] } : {}),
      bearer_methods_supported: ['header'],
      authorization_details_types_supported: [DETAIL_TYPE],
      mercure_cookie: cookie,
      ...(hasSubscriptions ? { mercure_subscriptions: true } : {}),
    };
  }
}

/** @param {string | undefined} host @returns {string} 'https://example.com'; http only on this machine; '' if it is malformed */
function originAt(host) {
  if (host === undefined || !HOST.test(host)) return '';
  return `${isLocalHost(host) ? 'http' : 'https'}://${host.toLowerCase()}`;
}

/** @param {URL} url @returns {string} '' for a URN */
function originOf({ protocol, host }) {
  return host && `${protocol}//${host}`;
}
