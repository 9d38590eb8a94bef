/*
 * Which new shard connects to which old one, if both are spread over several workers. Pure.
 */
import { pairsOf } from '../../lib/pairing.js';

/** @typedef {{ shard: number, name: string, weight: number }} Link shard `shard` of a new worker takes a share `weight` from the old shard called `name` */

/**
 * @param {string[][]} names of the old shards, by worker
 * @param {number[]} shards how many each new worker has
 * @returns {Link[][]} by new worker
 */
export function linksOf(names, shards) {
  const from = names.flat();
  const to = shards.flatMap((count, worker) =>
    Array.from({ length: count }, (_, shard) => ({ worker, shard })),
  );
  return linked(shards, pairsOf(from.length, to.length), ({ from: old, to: taker, weight }) => ({
    worker: to[taker].worker,
    link: { shard: to[taker].shard, name: from[old], weight },
  }));
}

/**
 * The same, but all streams of an old worker go to one new worker, so that it is known where each of them goes.
 * @param {string[][]} names @param {number[]} shards
 * @returns {{ links: Link[][], takers: number[] }} `takers`: the new worker of each old one
 */
export function wholeLinksOf(names, shards) {
  const takers = names.map((_, old) => Math.floor((old * shards.length) / names.length));
  const links = linked(
    shards,
    names.flatMap((own, old) =>
      pairsOf(own.length, shards[takers[old]]).map((pair) => ({ ...pair, own, old })),
    ),
    ({ from, to, weight, own, old }) => ({
      worker: takers[old],
      link: { shard: to, name: own[from], weight },
    }),
  );
  return { links, takers };
}

/**
 * @template T
 * @param {number[]} shards @param {T[]} pairs @param {(pair: T) => { worker: number, link: Link }} linkOf
 * @returns {Link[][]} by new worker
 */
function linked(shards, pairs, linkOf) {
  /** @type {Link[][]} */
  const links = shards.map(() => []);
  for (const pair of pairs) {
    const { worker, link } = linkOf(pair);
    links[worker].push(link);
  }
  return links;
}
