import assert from 'node:assert/strict';
import test from 'node:test';

import { read } from '../lib/payload.js';

const whole = { version: 2, name: 'f', title: 't', sentences: [] };

test('a payload is read', () => {
  assert.deepEqual(read(whole), { payload: whole, problems: [] });
});

test('keys of tomorrow are kept out of the way', () => {
  assert.deepEqual(read({ ...whole, tomorrow: [1] }).problems, []);
});

test('a newer version is not read', () => {
  const { payload, problems } = read({ ...whole, version: 3, kernels: 'other' });
  assert.equal(payload, null);
  assert.match(problems[0], /newer nbcomp \(format 3; this explorer reads 2\)/);
});

for (const data of [null, undefined, 3, 'text', [], {}, { ...whole, title: 4 }]) {
  test(`no headline, no explorer: ${JSON.stringify(data)}`, () => {
    assert.equal(read(data).payload, null);
  });
}

test('a broken section is left out and named', () => {
  const { payload, problems } = read({
    ...whole,
    kernels: [{ name: 'k', kind: 'map', number: 0, texts: { asm: { text: 3 } } }],
    stages: [{ name: 'llvm', seconds: null }]
  });
  assert.deepEqual(problems, ['kernels[0].texts.asm.text is integer instead of string']);
  assert.equal(payload.kernels, undefined);
  assert.equal(payload.stages.length, 1);
});

test('every form of a place list is read', () => {
  const text = { text: 'a\nb', places: [-1, [0, 1]], constructs: [0, -1] };
  const kernels = [{ name: 'k', kind: 'map', number: 0, texts: { asm: text } }];
  assert.deepEqual(read({ ...whole, kernels }).problems, []);
});
