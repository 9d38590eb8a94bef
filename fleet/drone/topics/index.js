/*
 * What the rest of a drone needs to subscribe to topics.
 */
export { HubAnswer } from './answer.js';
export { conflictIn, TOPIC_PARAMS, withoutSecrets } from './params.js';
export { askServers, countsSince } from './servers.js';
export { Subscribers } from './subscribers.js';
export { subscriptionOf } from './subscription.js';
export { TokenSupply } from './supply.js';
