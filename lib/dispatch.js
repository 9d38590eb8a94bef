/*
 * Messages between processes are objects with a `type`. Each side has one table of handlers.
 */
import { HoldfastError } from './errors.js';

/**
 * Passes a message to the handler for its type.
 * @template {{ type: string }} Message
 * @param {{ [T in Message['type']]: (message: Extract<Message, { type: T }>) => void }} handlers
 * @param {Message} message
 * @throws {HoldfastError} UNKNOWN_MESSAGE: the two sides are of different versions
 */
export function dispatch(handlers, message) {
  const handler =
    Object.hasOwn(handlers, message?.type) && handlers[/** @type {Message['type']} */ (message.type)];
  // Only the type is shown: there may be secrets in the rest.
  if (!handler)
    throw new HoldfastError('UNKNOWN_MESSAGE', `unknown message ${JSON.stringify(message?.type)}`);
  /** @type {(message: Message) => void} */ (handler)(message);
}
