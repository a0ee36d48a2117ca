import assert from 'node:assert/strict';
import test from 'node:test';

import { folded, squeezed, FOLDED } from '../lib/folding.js';
import { bytes, percent, seconds, si } from '../lib/format.js';
import { occurrences } from '../lib/line.js';
import { pieces, tokens } from '../lib/tokens.js';

const kinds = (line, language, help = {}) =>
  tokens(line, language, key => key in help).map(t => [line.slice(t.start, t.end), t.kind, t.help]);

test('words with help carry its key', () => {
  const found = kinds('\tvaddps\t%zmm0, %zmm1, %zmm2  # 3', 'asm', { 'asm:vaddps': 1 });
  assert.deepEqual(found[0], ['vaddps', 'nbx-t-f', 'asm:vaddps']);
  assert.deepEqual(found.at(-1), ['# 3', 'nbx-t-c', '']);
});

test('intrinsics have help, and other assembly languages their own', () => {
  const llvm = kinds('  %1 = call float @llvm.fma.f32(float %a)', 'llvm', { 'llvm:llvm.fma.f32': 1 });
  assert.deepEqual(llvm.find(t => t[2]), ['@llvm.fma.f32', 'nbx-t-v', 'llvm:llvm.fma.f32']);
  const known = key => key === 'aarch64:fmla';
  const [fmla] = tokens('  fmla v0.4s, v1.4s, v2.4s', 'asm', known, 'aarch64');
  assert.equal(fmla.help, 'aarch64:fmla');
  assert.equal(tokens('  fmla v0.4s', 'asm', known)[0].help, '');
  const loops = kinds('a[i] = b[i]  // streaming', 'loop', { 'loop:streaming': 1 });
  assert.deepEqual(loops.at(-1), ['streaming', 'nbx-t-f', 'loop:streaming']);
});

test('a matrix product is an operator in Python', () => {
  const found = kinds('return x @ W', 'python', { 'op:matmul': 1 });
  assert.deepEqual(found, [['return', 'nbx-t-k', ''], ['@', 'nbx-t-o', 'op:matmul']]);
});

test('a line is cut at every border, and nothing is lost', () => {
  const line = 'for i in x';
  const cut = pieces(line, [{ start: 0, end: 3, kind: 'k' }, { start: 2, end: 99, kind: 'u' }]);
  assert.equal(cut.map(p => p.text).join(''), line);
  assert.deepEqual(cut.map(p => p.kinds), [['k'], ['k', 'u'], ['u']]);
  assert.deepEqual(pieces('', []), []);
});

test('occurrences do not overlap and ignore case', () => {
  assert.deepEqual(occurrences('aAaa', 'aa'), [[0, 2], [2, 4]]);
  assert.deepEqual(occurrences('abc', ''), []);
});

test('what only folded frames take up is squeezed', () => {
  const map = squeezed([{ from: 100, to: 300 }], [{ from: 250, to: 400 }]);
  assert.equal(map(100), 100);
  assert.equal(map(250), 100 + FOLDED);
  assert.equal(map(400), 250 + FOLDED);
});

test('a folded kernel hides its boxes and its inner wires, and remembers the others', () => {
  const drawing = {
    width: 100,
    height: 500,
    boxes: [
      { kind: 'op', title: 'a', width: 10, height: 20, x: 10, y: 120, group: 0 },
      { kind: 'op', title: 'b', width: 10, height: 20, x: 10, y: 420, group: 1 }
    ],
    frames: [
      { title: 'k', group: 0, width: 80, height: 200, x: 0, y: 100 },
      { title: 'l', group: 1, width: 80, height: 90, x: 0, y: 400 }
    ],
    wires: [{ points: [[15, 110], [15, 120]] }, { points: [[15, 300], [15, 400]] }]
  };
  const small = folded(drawing, new Set([0]));
  assert.deepEqual(small.kept, [1]);
  assert.equal(small.wires.length, 1);
  assert.equal(small.frames[0].height, FOLDED);
  assert.equal(small.height, 500 - (200 - FOLDED));
  assert.deepEqual(folded(drawing, new Set()).boxes, drawing.boxes.map(b => ({ ...b })));
});

test('numbers as people read them', () => {
  assert.equal(seconds(2.14e-4), '214 µs');
  assert.equal(seconds(null), '–');
  assert.equal(si(1.37e11, 'FLOP/s'), '137 GFLOP/s');
  assert.equal(bytes(920064), '899 KiB');
  assert.equal(percent(0.004), '<1 %');
});
