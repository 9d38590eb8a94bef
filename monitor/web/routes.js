/*
 * The routes of the dashboard.
 */
import { assetRoutes, page } from './assets.js';
import { logIn, loginPage } from './login.js';

/** @typedef {import('../../lib/router.js').Route} Route */

/** @param {import('../access.js').Access} access @param {import('./live.js').Live} live @returns {Route[]} */
export function webRoutes(access, live) {
  /** @type {Route[]} */
  const own = [
    {
      methods: ['GET'],
      path: '/',
      handle: (request) => (access.wayOf(request) ? page() : loginPage('')),
    },
    { methods: ['POST'], path: '/login', handle: (request) => logIn(access, request) },
    // ?run=ID&after=MS: what a dashboard has not got yet
    {
      methods: ['GET'],
      path: '/history',
      handle: (_, { searchParams: query }) => ({
        status: 200,
        body: live.all(query.get('run') ?? '', Number(query.get('after')) || 0),
      }),
    },
    // frames as Server-Sent Events
    {
      methods: ['GET'],
      path: '/frames',
      handle: (request) => {
        const endMs = access.sessionEndMs(request);
        return { status: 200, take: (response) => void live.join(response, endMs) };
      },
    },
  ];
  return [...own.map((route) => ({ ...route, isHidden: true })), ...assetRoutes()];
}
