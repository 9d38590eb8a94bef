import assert from 'node:assert/strict';
import { test } from 'node:test';
import { descriptorLimit, limitsOf, MOST_CONNECTIONS } from '../lib/descriptors.js';
import { planWorkers } from '../limits/plan.js';

/** @param {object} [wish] */
const plan = (wish) =>
  planWorkers({ workers: 'auto', streams: 0, cores: 2, descriptorLimit: 20_000, ...wish });

test('one worker per core by default', () => {
  assert.equal(plan().workers, 2);
  assert.equal(plan({ cores: 8 }).workers, 8);
});

test('more workers if the streams need more file descriptors', () => {
  const { workers, capacity } = plan({ streams: 1_000_000 });
  assert.ok(workers * capacity >= 1_000_000);
  assert.ok((workers - 1) * capacity < 1_000_000);
});

test('a worker keeps file descriptors for itself and for requests in progress', () => {
  const { capacity, connectionLimit } = plan();
  assert.ok(connectionLimit < 20_000);
  assert.ok(capacity < connectionLimit);
});

test('a table has at most as many connections as there are ids, and at least one, whatever the limit', () => {
  for (const descriptors of [1_073_741_816, Number.MAX_SAFE_INTEGER]) {
    const { capacity, connectionLimit } = limitsOf(descriptors);
    assert.equal(connectionLimit, MOST_CONNECTIONS);
    assert.ok(capacity < connectionLimit);
  }
  for (const descriptors of [0, 64, 65]) {
    assert.deepEqual(limitsOf(descriptors), { capacity: 1, connectionLimit: 1 });
  }
  assert.equal(plan({ descriptorLimit: 1_073_741_816, streams: 1_000_000 }).workers, 2);
});

test('the primary distributes connections only if more than half of the file descriptors are needed', () => {
  assert.equal(plan().scheduling, 'shared');
  assert.equal(plan({ streams: 15_000 }).scheduling, 'shared');
  assert.equal(plan({ streams: 30_000 }).scheduling, 'round-robin');
});

test('too few workers for the streams are refused with the number that is enough and the line to change', () => {
  assert.throws(() => plan({ streams: 100_000, workers: 2 }), {
    code: 'NO_PLAN',
    message: /--workers 2: .*20000 file descriptors.*use --workers 6, or set '\* hard nofile \d+'/,
  });
});

test('if shards have their own tables there is one worker per core, with as many shards as the streams need', () => {
  const sharded = (/** @type {object} */ wish) => plan({ mostShards: 255, ...wish });
  assert.deepEqual([sharded({}).workers, sharded({}).shards], [2, 1]);
  assert.deepEqual([sharded({ streams: 60_000 }).workers, sharded({ streams: 60_000 }).shards], [2, 2]);
  assert.equal(sharded({ streams: 60_000, workers: 1 }).shards, 4);
  const { workers, shards, capacity } = sharded({ streams: 1_000_000 });
  const mean = 1_000_000 / (workers * shards);
  assert.equal(workers, 2);
  assert.ok(
    mean + 6 * Math.sqrt(mean) <= capacity,
    'connections come by lot, and the fullest shard has room',
  );
  assert.ok((workers * shards - 2) * capacity < 1_060_000, 'not many more than needed');
});

test('if they have not, one worker for many streams is refused with the number that is enough', () => {
  assert.equal(plan({ streams: 60_000 }).workers, 4);
  assert.throws(() => plan({ streams: 60_000, workers: 1 }), {
    code: 'NO_PLAN',
    message: /use --workers 4/,
  });
});

test('a limit that leaves no room, or too many workers, is refused', () => {
  assert.throws(() => plan({ descriptorLimit: 100 }), { code: 'NO_PLAN', message: /100 file descriptors/ });
  assert.throws(() => plan({ streams: 100_000_000 }), { code: 'NO_PLAN', message: /1024 is the maximum/ });
});

test('more workers than the primary has file descriptors for are refused', () => {
  assert.throws(() => plan({ workers: 60, descriptorLimit: 128 }), {
    code: 'NO_PLAN',
    message: /enough for 21/,
  });
  assert.throws(() => plan({ streams: 3000, descriptorLimit: 128 }), {
    code: 'NO_PLAN',
    message: /21 is the maximum here/,
  });
});

test('the limit of this process is read', () => {
  assert.ok(descriptorLimit() >= 128);
});
