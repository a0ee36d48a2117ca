import assert from 'node:assert/strict';
import test from 'node:test';

import { listen } from '../lib/kernels.js';
import { follow, tell } from '../lib/live.js';

test('what a kernel says is shown, at once and later, in the place of what is saved', () => {
  const [early, other, none] = [{}, {}, {}];
  follow(early, 'a-1', ['saved'], (node, reasons) => (node.reasons = reasons));
  follow(none, '', ['saved'], (node, reasons) => (node.reasons = reasons));
  assert.deepEqual(early.reasons, ['saved']);
  tell({ 'a-1': [], 'a-2': ['w is another array'] });
  assert.deepEqual(early.reasons, []);
  assert.deepEqual(none.reasons, ['saved']);
  follow(other, 'a-2', [], (node, reasons) => (node.reasons = reasons));
  assert.deepEqual(other.reasons, ['w is another array']);
});

test('what makes no sense is ignored', () => {
  const node = {};
  follow(node, 'b-1', ['saved'], (n, reasons) => (n.reasons = reasons));
  for (const state of [null, 7, 'text', { 'b-1': 'text' }, { 'b-1': [7] }]) {
    tell(state);
  }
  assert.deepEqual(node.reasons, ['saved']);
});

class Kernel {
  comms = { known: {} };
  sent = [];
  registerCommTarget(name, opened) {
    this.target = [name, opened];
  }
  requestCommInfo() {
    return Promise.resolve({ content: { comms: this.comms } });
  }
  createComm(name, id) {
    return { id, send: data => this.sent.push([name, id, data]) };
  }
}

test('a page asks the comms that are there, and hears those that come', async () => {
  const kernel = new Kernel();
  const context = { session: null, kernelChanged: { connect: slot => (context.changed = slot) } };
  listen(context);
  listen(context);
  context.session = { kernel };
  context.changed();
  context.changed();
  await new Promise(resolve => setTimeout(resolve));
  assert.deepEqual(kernel.sent, [['nbcomp', 'known', {}]]);
  const node = {};
  follow(node, 'c-1', [], (n, reasons) => (n.reasons = reasons));
  const comm = {};
  kernel.target[1](comm);
  comm.onMsg({ content: { data: { stale: { 'c-1': ['gone'] } } } });
  assert.deepEqual(node.reasons, ['gone']);
});
