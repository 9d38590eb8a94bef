/*
 * Messages of the experiment `ipc`: they look like those of the server and travel in the same way.
 */

/**
 * Passes a message to the handler of its type.
 * @param {Record<string, (message: any) => void>} handlers @param {{ type: string }} message
 */
export function dispatch(handlers, message) {
  const handler = handlers[message.type];
  if (!handler) throw new Error(`unknown message ${JSON.stringify(message)}`);
  handler(message);
}
