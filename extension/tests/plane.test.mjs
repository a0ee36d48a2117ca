import assert from 'node:assert/strict';
import test from 'node:test';

import { around, meet } from '../lib/plane.js';

test('rectangles meet where they share a point', () => {
  const a = { x: 0, y: 0, width: 10, height: 10 };
  assert.ok(meet(a, { x: 10, y: 10, width: 1, height: 1 }));
  assert.ok(meet(a, { x: 3, y: 3, width: 0, height: 0 }));
  assert.ok(!meet(a, { x: 11, y: 0, width: 5, height: 5 }));
  assert.ok(!meet(a, { x: 0, y: -6, width: 5, height: 5 }));
});

test('the rectangle around points', () => {
  assert.deepEqual(around([[3, 9], [1, 4]]), { x: 1, y: 4, width: 2, height: 5 });
});
