/*
 * The floor: a bare epoll loop with no checks and no timeouts. It shows what the kernel alone costs.
 */
import { setTimeout as after } from 'node:timers/promises';
import { bareProgram } from './bare.js';
import { Program } from './program.js';

/** A bare loop writes its pings in steps of this length, as a shard of the server does. */
const STEP_MS = 200;

export class Floor extends Program {
  /** @param {import('./lab.js').Lab} lab @param {{ intervalMs: number, port?: number }} options interval 0: no pings; port 0: any */
  constructor(lab, { intervalMs, port = 0 }) {
    super(lab, bareProgram('floor'), [String(intervalMs), String(port)]);
    this.port = port;
  }

  /** @returns {Promise<this>} once it listens */
  async listening() {
    this.port = Number((await this.answer())[1]);
    return this;
  }

  pids() {
    return [this.pid];
  }

  /** Sends a chunk of that length to every stream. @param {string} message */
  async publish(message) {
    await this.ask(`publish ${message.length}`);
  }

  /** A text of that length, which begins with the time, so that the clients can say how old it is. @param {number} length @param {number} sentUs unix µs */
  async publishTimed(length, sentUs) {
    await this.ask(`publish ${length} ${sentUs}`);
  }

  /** Sends a text of that length to so many streams, each far from the one before it. @param {number} length @param {number} count */
  async spread(length, count) {
    await this.ask(`spread ${length} ${count}`);
  }

  /** Moves all streams as a handover does. @returns {Promise<number>} how many */
  async move() {
    return Number((await this.ask('move'))[1]);
  }
}

/**
 * @typedef {object} Floors
 * @property {() => number[]} pids
 * @property {() => void} check
 * @property {(length: number) => Promise<void>} publish a text of that length to all streams of all loops, with the time at which it was sent
 * @property {(length: number, count: number) => Promise<void>} spread a text of that length to so many streams of each loop
 * @property {() => Promise<number>} move moves all streams of all loops at once, and returns how many
 * @property {() => Promise<void>} stop
 */

/**
 * Several bare loops on one port, each a process with its own descriptor table. Their starts are spread over one step,
 * as the shards of the server spread their wake-ups.
 * @param {import('./lab.js').Lab} lab @param {number} port @param {number} intervalMs @param {number} count
 * @returns {Promise<Floors>}
 */
export async function startFloors(lab, port, intervalMs, count) {
  /** @type {Floor[]} */
  const floors = [];
  for (let i = 0; i < count; i++) {
    floors.push(new Floor(lab, { intervalMs, port }));
    await after(STEP_MS / count);
  }
  await Promise.all(floors.map((floor) => floor.listening()));
  return {
    pids: () => floors.map(({ pid }) => pid),
    check: () => {
      for (const floor of floors) floor.check();
    },
    publish: async (length) => {
      const sentUs = Math.round((performance.timeOrigin + performance.now()) * 1000);
      await Promise.all(floors.map((floor) => floor.publishTimed(length, sentUs)));
    },
    spread: async (length, count) =>
      void (await Promise.all(floors.map((floor) => floor.spread(length, count)))),
    move: async () => {
      const moved = await Promise.all(floors.map((floor) => floor.move()));
      return moved.reduce((sum, one) => sum + one, 0);
    },
    stop: async () => void (await Promise.all(floors.map((floor) => floor.stop()))),
  };
}
