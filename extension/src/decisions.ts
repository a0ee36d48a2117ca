/**
 * Why and why not: every decision on the user's lines, grouped by line, with what would help. What
 * was not done comes first, because it is what a reader can change. Knows the remarks of a payload.
 */

import type { Context } from './context.js';
import { button, h, visible } from './dom.js';
import { count } from './format.js';
import { remark, SIGNS } from './inspector.js';
import type { Mark, Remark } from './schema.js';
import type { View } from './views.js';

type Kind = Mark['mark'];

/** The decisions, by line. */
export const DECISIONS: View = {
  name: 'decisions',
  title: 'Why',
  sections: ['remarks'],
  has: payload => !!payload.remarks?.length,
  make: context => decisions(context)
};

function kindOf({ mark, done }: Remark): Kind {
  return mark ?? (done ? 'applied' : 'missed');
}

function decisions(context: Context): HTMLElement {
  const remarks = context.payload.remarks ?? [];
  const body = h('div', { class: 'nbx-decisions' });
  const kinds: (Kind | 'all')[] = ['all', 'missed', 'applied', 'analysis'];
  const choices = h('div', { class: 'nbx-choice', role: 'group', 'aria-label': 'which decisions' });
  const choose = (kind: Kind | 'all'): void => {
    const shown = remarks.filter(r => kind === 'all' || kindOf(r) === kind);
    body.replaceChildren(...lines(context, shown));
    [...choices.children].forEach(c => c.setAttribute('aria-pressed', String(c.getAttribute('data-kind') === kind)));
  };
  for (const kind of kinds) {
    const number = remarks.filter(r => kind === 'all' || kindOf(r) === kind).length;
    if (number) {
      const text = kind === 'all' ? `All ${number}` : `${SIGNS[kind].sign} ${SIGNS[kind].words} ${number}`;
      const made = button(text, `Show ${count(number, 'decision')}`, () => choose(kind));
      made.dataset['kind'] = kind;
      choices.append(made);
    }
  }
  choose('all');
  // "All" and one kind: nothing to choose.
  const bar = choices.childElementCount > 2 && h('div', { class: 'nbx-bar' }, choices);
  return h('div', {}, bar, body);
}

function lines(context: Context, remarks: readonly Remark[]): HTMLElement[] {
  const byLine = new Map<number, Remark[]>();
  for (const r of remarks) {
    byLine.set(r.line ?? 0, [...(byLine.get(r.line ?? 0) ?? []), r]);
  }
  return [...byLine].sort(([a], [b]) => a - b).map(([line, list]) => group(context, line, list));
}

function group(context: Context, line: number, remarks: readonly Remark[]): HTMLElement {
  const source = context.sourceLine(line).trim() || remarks[0]?.source || '';
  const order: Kind[] = ['missed', 'applied', 'analysis'];
  const sorted = [...remarks].sort((a, b) => order.indexOf(kindOf(a)) - order.indexOf(kindOf(b)));
  return h(
    'div',
    { class: 'nbx-decision' },
    h('div', { class: 'nbx-where' }, line ? h('b', {}, `line ${line}`) : h('b', {}, 'everywhere'), ' ', h('code', {}, visible(source))),
    ...sorted.map(r => remark({ line, mark: kindOf(r), topic: r.topic, reason: r.reason, hint: r.hint }))
  );
}
