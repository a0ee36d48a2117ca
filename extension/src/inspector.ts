/**
 * The strip at the foot that says what the reader is at: the expression, why it is so, what a word
 * means; of nothing in particular, which kernels there are. It has a fixed height, so that nothing
 * jumps, and is read out when it changes.
 */

import { swatch } from './colours.js';
import type { Note } from './context.js';
import { h, prose, visible, type Child } from './dom.js';
import { count } from './format.js';
import type { Kernel, Mark } from './schema.js';

export const SIGNS: Record<Mark['mark'], { sign: string; words: string }> = {
  applied: { sign: '✓', words: 'done' },
  missed: { sign: '✗', words: 'not done' },
  analysis: { sign: 'i', words: 'note' }
};

const INVITATION =
  'Point at a line or a box to see what it came from and what it became; click to keep it, Esc to let go.';

const LISTED = 12; // kernels that are named

export class Inspector {
  readonly node = h('div', { class: 'nbx-inspector', role: 'status', 'aria-live': 'polite' });
  private current: Note | null = null;
  private kept: Note | null = null;

  constructor(private readonly kernels: readonly Kernel[]) {
    this.show(null);
  }

  /** Show a note; null: the one that was kept. */
  show(note: Note | null): void {
    this.current = note;
    const shown = note ?? this.kept;
    this.node.replaceChildren(...(shown ? content(shown) : overview(this.kernels)));
  }

  /** Whether to come back to the present note when the reader is at nothing. */
  keep(pinned: boolean): void {
    if (!pinned) {
      this.kept = null;
    } else if (!this.kept) {
      this.kept = this.current;
    }
    this.show(this.current);
  }
}

/** How to begin, and what each colour stands for. */
function overview(kernels: readonly Kernel[]): Node[] {
  const row = ({ name, number, kind, operators = '', lines = '', calls = 1 }: Kernel): HTMLElement =>
    h(
      'li',
      {},
      swatch(number),
      h('span', {}, h('b', {}, visible(calls > 1 ? `${name} ×${calls}` : name)), h('span', { class: 'nbx-faint' }, visible(` ${kind} · ${[operators, lines].filter(Boolean).join(' · ')}`)))
    );
  const rest = kernels.length - LISTED;
  return [
    h('div', { class: 'nbx-faint' }, INVITATION),
    h('ul', { class: 'nbx-overview', 'aria-label': 'kernels' }, ...kernels.slice(0, LISTED).map(row)),
    ...(rest > 0 ? [h('div', { class: 'nbx-faint' }, `and ${count(rest, 'more kernel')}`)] : [])
  ];
}

function content(note: Note): Child[] & Node[] {
  return [
    h('div', {}, h('b', {}, visible(note.heading)), ' ', note.code ? h('code', {}, visible(note.code)) : null),
    ...note.remarks.map(remark),
    ...note.facts.filter(Boolean).map(fact => h('div', { class: 'nbx-fact' }, ...prose(fact)))
  ];
}

/** One decision: its sign, its topic, the reason, and what would help. */
export function remark({ mark, topic, reason, hint = '' }: Mark): HTMLElement {
  const { sign, words } = SIGNS[mark];
  return h(
    'div',
    { class: 'nbx-remark' },
    h('span', { class: `nbx-sign nbx-${mark}`, 'aria-label': words, role: 'img' }, sign),
    h(
      'span',
      {},
      h('b', {}, visible(topic)),
      ' ',
      ...prose(reason),
      ...(hint ? [h('span', { class: 'nbx-hint' }, ' → ', ...prose(hint))] : [])
    )
  );
}
