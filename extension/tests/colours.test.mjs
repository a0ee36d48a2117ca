import assert from 'node:assert/strict';
import test from 'node:test';

import { colour, numberOf, numeral } from '../lib/colours.js';

const payload = { kernels: [{ name: 'exp_add', number: 8 }] };

test('a kernel has one number and one colour in every view', () => {
  const number = numberOf(payload, 'exp_add');
  assert.equal(numeral(number), '9');
  assert.equal(colour(number), 'nbx-group-1');
});

test('what is no kernel has neither', () => {
  for (const data of [payload, {}]) {
    const number = numberOf(data, 'matmul');
    assert.equal(number, -1);
    assert.equal(numeral(number), '');
    assert.equal(colour(number), '');
  }
});
