import assert from 'node:assert/strict';
import test from 'node:test';

import { NOTHING, Places, Relation, Selection } from '../lib/selection.js';

const places = new Places({
  places: [
    { line: 2, column: 4, end_line: 2, end_column: 9 },
    { line: 2, column: 12, end_line: 2, end_column: 20 },
    { line: 3, column: 0, end_line: 4, end_column: 5 }
  ]
});

test('a source line chooses all places on it', () => {
  assert.deepEqual(places.ofLine(2).places, [0, 1]);
  assert.deepEqual(places.ofLine(4).places, [2]);
  assert.deepEqual(places.ofLine(9), { places: [], lines: [9], construct: -1 });
});

test('what reaches over many lines is at its first one, unless there is nothing smaller', () => {
  const loops = new Places({ places: [{ line: 2, end_line: 6 }, { line: 3 }, { line: 4, end_line: 6 }] });
  assert.deepEqual(loops.ofLine(2).places, [0]);
  assert.deepEqual(loops.ofLine(3).places, [1]);
  assert.deepEqual(loops.ofLine(5).places, [2]);
});

test('the same expression is nearer than the same line', () => {
  const selection = new Selection();
  selection.hover(places.trace(0));
  assert.equal(selection.relation(places.trace([0])), Relation.same);
  assert.equal(selection.relation(places.trace([2, 0])), Relation.same);
  assert.equal(selection.relation(places.trace(1)), Relation.line);
  assert.equal(selection.relation(places.trace(2)), Relation.none);
  assert.equal(selection.relation(NOTHING), Relation.none);
});

test('a line alone is enough where there are no places', () => {
  const bare = new Places({});
  const selection = new Selection();
  selection.hover(bare.ofLine(3));
  assert.equal(selection.relation(bare.trace(undefined, 3)), Relation.same);
  assert.equal(selection.relation(bare.trace(undefined, 4)), Relation.none);
});

test('places that do not exist are none', () => {
  assert.equal(places.trace(-1), NOTHING);
  assert.equal(places.trace([7]), NOTHING);
});

test('what is pinned stays until it is let go', () => {
  const selection = new Selection();
  let told = 0;
  selection.listen(() => told++);
  const trace = places.trace(0);
  selection.pin(trace);
  selection.hover(places.trace(2));
  assert.equal(selection.relation(trace), Relation.same);
  assert.equal(told, 1);
  selection.pin(trace);
  assert.ok(selection.empty);
  selection.pin(trace);
  selection.clear();
  assert.ok(selection.empty && !selection.pinned);
});

test('lines of the same construct belong together', () => {
  const selection = new Selection();
  selection.hover(places.trace(-1, 0, 3));
  assert.equal(selection.relation(places.trace(-1, 0, 3)), Relation.line);
  assert.equal(selection.relation(places.trace(-1, 0, 2)), Relation.none);
});
