/*
 * The side of a helper: does what it is told by messages, and ends with the process that started it.
 */
import { messageOf } from '../../../lib/errors.js';

/** @param {Record<string, (argument: any) => unknown>} orders what to do, by name; promises are waited for */
export function follow(orders) {
  process.on('message', async (message) => {
    const { id, order, argument } = /** @type {{ id: number, order: string, argument: unknown }} */ (message);
    try {
      process.send?.({ id, answer: (await orders[order](argument)) ?? null });
    } catch (error) {
      process.send?.({ id, problem: messageOf(error) });
    }
  });
  process.on('disconnect', () => process.exit(0));
}
