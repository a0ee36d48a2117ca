/**
 * Pass by pass: a list of all passes in order, with what each cost and what the program's run time
 * was after it, and the difference the chosen one made. Knows the passes of a payload.
 */

import { colour, numberOf } from './colours.js';
import type { Context } from './context.js';
import { h, keepKeys, uniqueId, visible } from './dom.js';
import { copyButton, tools } from './files.js';
import { count, digits, seconds } from './format.js';
import type { Section } from './line.js';
import { Listing } from './listing.js';
import type { Pass } from './schema.js';
import type { View } from './views.js';

/** The timeline and the difference. */
export const PASSES: View = {
  name: 'passes',
  title: 'Passes',
  sections: ['passes'],
  has: payload => !!payload.passes?.length,
  make: context => new Timeline(context).node
};

class Timeline {
  readonly node: HTMLElement;
  private readonly list = h('div', { class: 'nbx-timeline', role: 'listbox', tabindex: 0, 'aria-label': 'passes' });
  private readonly detail = h('div', { class: 'nbx-pane', 'aria-live': 'polite' });
  private readonly passes: readonly Pass[];
  private readonly id = uniqueId('pass');
  private current = -1;

  constructor(private readonly context: Context) {
    this.passes = context.payload.passes ?? [];
    this.list.append(...this.rows());
    keepKeys(this.list);
    this.list.addEventListener('keydown', event => this.key(event));
    this.list.addEventListener('click', event => {
      const row = (event.target as Element).closest<HTMLElement>('[data-pass]');
      if (row) {
        this.choose(Number(row.dataset['pass']));
      }
    });
    this.node = h('div', { class: 'nbx-workbench nbx-passes' }, this.list, this.detail);
    this.choose(Math.max(0, this.passes.findIndex(changed)));
  }

  private rows(): HTMLElement[] {
    const longest = Math.max(...this.passes.map(p => p.seconds ?? 0), 1e-12);
    const slowest = Math.max(...this.passes.map(p => p.measured?.seconds ?? 0), 0);
    const rows: HTMLElement[] = slowest ? [legend()] : [];
    this.passes.forEach((pass, i) => {
      if (pass.level !== this.passes[i - 1]?.level) {
        rows.push(h('div', { class: 'nbx-timeline-level', role: 'presentation' }, visible(pass.level)));
      }
      rows.push(this.row(pass, i, longest, slowest));
    });
    return rows;
  }

  private row(pass: Pass, i: number, longest: number, slowest: number): HTMLElement {
    const cost = h('span', { class: 'nbx-track' }, h('span', { class: 'nbx-fill' }));
    (cost.firstElementChild as HTMLElement).style.width = `${(100 * (pass.seconds ?? 0)) / longest}%`;
    const { measured } = pass;
    const run = h('span', { class: 'nbx-track nbx-run' }, h('span', { class: `nbx-fill ${colour(2)}` }));
    (run.firstElementChild as HTMLElement).style.width = `${slowest ? (100 * (measured?.seconds ?? 0)) / slowest : 0}%`;
    return h(
      'div',
      { class: `nbx-pass ${changed(pass) ? '' : 'nbx-idle'}`, role: 'option', id: `${this.id}-${i}`, 'data-pass': i },
      h('span', { class: 'nbx-pass-name' }, visible(pass.name)),
      h('span', { class: 'nbx-change' }, changed(pass) ? `+${pass.added ?? 0} −${pass.removed ?? 0}` : 'no change'),
      cost,
      h('span', { class: 'nbx-bar-words', title: 'what the pass took' }, pass.seconds ? seconds(pass.seconds) : ''),
      measured ? run : null,
      measured ? h('span', { class: 'nbx-bar-words', title: 'run time after it' }, seconds(measured.seconds)) : null
    );
  }

  private choose(index: number): void {
    const pass = this.passes[index];
    if (!pass || index === this.current) {
      return;
    }
    this.current = index;
    for (const row of this.list.querySelectorAll('[data-pass]')) {
      row.setAttribute('aria-selected', String(row.getAttribute('data-pass') === String(index)));
    }
    this.list.setAttribute('aria-activedescendant', `${this.id}-${index}`);
    this.detail.replaceChildren(...this.about(pass, this.before(index)));
  }

  /** The last measured run time before a pass. */
  private before(index: number): number | null {
    for (let i = index - 1; i >= 0; i--) {
      const found = this.passes[i]?.measured?.seconds;
      if (found) {
        return found;
      }
    }
    return null;
  }

  private about(pass: Pass, before: number | null): HTMLElement[] {
    const head = h(
      'div',
      { class: 'nbx-about' },
      h('b', {}, visible(pass.name)),
      ' ',
      h('span', { class: 'nbx-faint' }, visible(pass.description ?? '')),
      h('div', {}, ...gain(pass, before))
    );
    const sections = (pass.diffs ?? []).map(
      ([kernel, lines]): Section => ({
        title: kernel || pass.level,
        detail: count(lines.length, 'line'),
        number: numberOf(this.context.payload, kernel),
        language: 'diff',
        lines
      })
    );
    if (!sections.length) {
      return [head, h('div', { class: 'nbx-empty' }, 'This pass changed nothing here.')];
    }
    const { selection, help } = this.context;
    const listing = new Listing({ label: `what ${pass.name} changed`, sections, selection, help });
    const bar = h('div', { class: 'nbx-bar' }, head, tools(copyButton('the difference', () => listing.text())));
    return [bar, listing.node];
  }

  private key(event: KeyboardEvent): void {
    const moves: Record<string, number> = {
      ArrowDown: this.current + 1,
      ArrowUp: this.current - 1,
      Home: 0,
      End: this.passes.length - 1
    };
    const target = moves[event.key];
    if (target === undefined || event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    this.choose(Math.max(0, Math.min(target, this.passes.length - 1)));
    document.getElementById(`${this.id}-${this.current}`)?.scrollIntoView({ block: 'nearest' });
    event.preventDefault();
    event.stopPropagation();
  }
}

function legend(): HTMLElement {
  const sign = (group: number): HTMLElement => h('span', { class: `nbx-legend-sign ${colour(group)}` });
  return h(
    'div',
    { class: 'nbx-timeline-level', role: 'presentation' },
    sign(0),
    'what a pass took',
    sign(2),
    'run time after it'
  );
}

function changed(pass: Pass): boolean {
  return !!(pass.added || pass.removed || pass.diffs?.length);
}

/** What the program's run time is after a pass, and what that is against before. */
function gain({ measured }: Pass, before: number | null): string[] {
  if (!measured) {
    return [];
  }
  const { seconds: now, low, high, note, same } = measured;
  const range = low && high ? ` (${seconds(low)}–${seconds(high)})` : '';
  const words = now && before ? `${comparison(now, before)}, ` : '';
  const answer = same === false ? 'the answer CHANGED' : 'same answer';
  const rest = note && same !== false ? note : `${words}${answer}${note ? `, ${note}` : ''}`;
  return [visible(`Runs in ${seconds(now)}${range} after it: ${rest}`)];
}

/** A run time against another one; within 3 % they are the same. */
export function comparison(now: number, before: number): string {
  const ratio = before / now;
  if (ratio < 1.03 && ratio > 0.97) {
    return 'as fast as before';
  }
  return ratio > 1 ? `${digits(ratio)}× faster than before` : `${digits(1 / ratio)}× slower than before`;
}

