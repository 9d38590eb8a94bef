/*
 * Dials through the native core. (Its making is under way: until then plain sockets serve.)
 */
export { create } from './dial.plain.js';
