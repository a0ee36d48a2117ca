/**
 * Lines of code in foldable sections: one widget for the source, the levels and the diffs. Only
 * the lines in sight are elements, so ten thousand of them scroll like ten. To a keyboard and a
 * screen reader it is a tree: sections, and lines within them. Knows lines and the selection; it
 * must not know what the lines mean.
 */

import { h, keepKeys, uniqueId, type Child } from './dom.js';
import { codeLine, coloured, header, occurrences, type Hit, type Section, type Spot } from './line.js';
import { NOTHING, Relation, type Selection, type Trace } from './selection.js';
import type { Span } from './tokens.js';

export const ROW = 18; // pixels; style.ts has the same number
const DATA = /^\s*\.|:$/; // labels and data of assembly, which are not what a reader looks for
const OVERSCAN = 12; // lines drawn above and below what is in sight

export interface ListingOptions {
  readonly label: string;
  readonly sections: readonly Section[];
  readonly selection: Selection;
  /** What is written before a line. */
  readonly gutter?: (spot: Spot) => Child[];
  /** Marks on parts of a line. */
  readonly decorate?: (spot: Spot) => Span[];
  /** The hover help under a key, if any. */
  readonly help: (key: string) => string;
  /** The mouse or the keyboard is on a line (null: it left). */
  readonly attend?: (spot: Spot | null) => void;
}

export class Listing {
  readonly node = h('div', { class: 'nbx-code' });
  private readonly view: HTMLElement;
  private readonly spacer = h('div', { class: 'nbx-spacer', role: 'presentation' });
  private readonly ruler = h('canvas', { class: 'nbx-ruler', 'aria-hidden': true });
  private readonly drawn = new Map<number, HTMLElement>();
  private readonly folded = new Set<number>();
  private readonly id = uniqueId('line');
  private rows: Spot[] = [];
  private active = 0;
  private hits: readonly Hit[] = [];
  private currentHit: Hit | null = null;
  private awaited = false; // something to be brought into sight when it is shown
  private frame = 0;
  private attended = -1;

  constructor(private readonly options: ListingOptions) {
    this.view = h('div', {
      class: 'nbx-lines',
      role: 'tree',
      tabindex: 0,
      'aria-label': options.label
    });
    keepKeys(this.view);
    this.view.append(this.spacer);
    this.node.append(this.view, this.ruler);
    this.fold(() => undefined);
    this.view.addEventListener('scroll', () => this.later());
    this.view.addEventListener('keydown', event => this.key(event));
    this.view.addEventListener('focus', () => this.focused());
    this.view.addEventListener('blur', () => this.leave());
    this.spacer.addEventListener('mouseover', event => this.point(event));
    this.spacer.addEventListener('mouseleave', () => this.leave());
    this.spacer.addEventListener('mousedown', event => this.aim(event));
    this.spacer.addEventListener('click', event => this.click(event));
    new ResizeObserver(() => this.later()).observe(this.view);
    options.selection.listen(() => this.later());
  }

  /** Lines of the selection in this listing. */
  related(): number {
    const { sections, selection } = this.options;
    return sections.reduce(
      (sum, s) => sum + (s.traces ?? []).filter(t => selection.relation(t) === Relation.same).length,
      0
    );
  }

  /** Scroll to the first line of the selection, unless one is wholly in sight; later, if nothing is
   * shown yet. */
  revealRelated(): void {
    this.awaited = !this.view.clientHeight;
    if (this.awaited) {
      return;
    }
    const { sections, selection } = this.options;
    const of = (row: number): Relation => {
      const spot = this.rows[row]!;
      return selection.relation(sections[spot.section]?.traces?.[spot.line] ?? NOTHING);
    };
    const related = this.rows.map((_, row) => row).filter(row => of(row) === Relation.same);
    const code = related.filter(row => !DATA.test(this.line(this.rows[row]!)));
    const [target] = code.length ? code : related;
    const { scrollTop, clientHeight } = this.view;
    const [first, end] = [scrollTop / ROW, (scrollTop + clientHeight) / ROW];
    if (target !== undefined && !code.some(row => row >= first && row + 1 <= end)) {
      this.view.scrollTop = Math.max(0, target * ROW - this.view.clientHeight / 3);
    }
  }

  /** All occurrences of a lower-case text. */
  find(query: string): Hit[] {
    return this.options.sections.flatMap(({ lines }, section) =>
      lines.flatMap((text, line) => occurrences(text, query).map(([start, end]) => ({ section, line, start, end })))
    );
  }

  /** Mark these occurrences, one of them as the current one, and show that one. */
  mark(hits: readonly Hit[], current: Hit | null): void {
    this.hits = hits;
    this.currentHit = current;
    if (current) {
      this.fold(folded => folded.delete(current.section));
      const row = this.rows.findIndex(r => r.section === current.section && r.line === current.line);
      this.active = row;
      this.view.scrollTop = Math.max(0, row * ROW - this.view.clientHeight / 2);
    }
    this.redraw();
  }

  /** Open or close all sections. */
  foldAll(closed: boolean): void {
    this.fold(folded => {
      folded.clear();
      this.options.sections.forEach((s, i) => closed && s.title && folded.add(i));
    });
  }

  /** The texts of all sections, as they are copied and saved. */
  text(): string {
    return this.options.sections
      .map(s => [...(s.title && this.options.sections.length > 1 ? [`# ${s.title}`] : []), ...s.lines].join('\n'))
      .join('\n\n');
  }

  private fold(change: (folded: Set<number>) => void): void {
    change(this.folded);
    this.rows = this.options.sections.flatMap((section, index) => [
      ...(section.title ? [{ section: index, line: -1 }] : []),
      ...(this.folded.has(index) ? [] : section.lines.map((_, line) => ({ section: index, line })))
    ]);
    const longest = this.rows.reduce((n, row) => Math.max(n, this.line(row).length), 0);
    this.spacer.style.height = `${this.rows.length * ROW}px`;
    this.spacer.style.minWidth = `calc(${longest + 2}ch + 110px)`;
    this.active = Math.min(this.active, Math.max(0, this.rows.length - 1));
    this.redraw();
  }

  private line(spot: Spot): string {
    return this.options.sections[spot.section]?.lines[spot.line] ?? '';
  }

  private trace(row: number): Trace {
    const spot = this.rows[row];
    return (spot && this.options.sections[spot.section]?.traces?.[spot.line]) ?? NOTHING;
  }

  // ------------------------------------------------------------------------------ drawing

  private redraw(): void {
    this.drawn.forEach(element => element.remove());
    this.drawn.clear();
    this.later();
  }

  private later(): void {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
    });
  }

  private inSight(): [number, number] {
    const first = Math.floor(this.view.scrollTop / ROW);
    return [first, first + Math.ceil(this.view.clientHeight / ROW)];
  }

  private draw(): void {
    if (!this.view.clientHeight) {
      return; // not shown: drawn when it is
    }
    if (this.awaited) {
      this.revealRelated();
    }
    const [first, last] = this.inSight();
    const from = Math.max(0, first - OVERSCAN);
    const to = Math.min(this.rows.length - 1, last + OVERSCAN);
    for (const [row, element] of this.drawn) {
      if (row < from || row > to) {
        element.remove();
        this.drawn.delete(row);
      }
    }
    for (let row = from; row <= to; row++) {
      const element = this.drawn.get(row) ?? this.add(row);
      this.paint(row, element);
    }
    this.rule();
  }

  private add(row: number): HTMLElement {
    const spot = this.rows[row]!;
    const element = spot.line < 0 ? this.header(spot) : this.codeLine(spot);
    element.id = `${this.id}-${row}`;
    element.dataset['row'] = String(row);
    element.setAttribute('aria-posinset', String(row + 1));
    element.setAttribute('aria-setsize', String(this.rows.length));
    element.dataset['marks'] = this.marksOf(spot);
    element.style.top = `${row * ROW}px`;
    this.spacer.append(element);
    this.drawn.set(row, element);
    return element;
  }

  private header({ section }: Spot): HTMLElement {
    return header(this.options.sections[section]!, !this.folded.has(section));
  }

  private codeLine(spot: Spot): HTMLElement {
    const section = this.options.sections[spot.section]!;
    return codeLine(section, spot.line, this.options.gutter?.(spot) ?? [], this.code(spot));
  }

  /** The text of a line in pieces: coloured, with the view's marks and what was searched for. */
  private code(spot: Spot): Child[] {
    const found = this.hits
      .filter(hit => same(hit, spot))
      .map(hit => ({ start: hit.start, end: hit.end, kind: hit === this.currentHit ? 'nbx-hit nbx-now' : 'nbx-hit' }));
    const marks = [...(this.options.decorate?.(spot) ?? []), ...found];
    return coloured(this.line(spot), this.options.sections[spot.section]!, marks, this.options.help);
  }

  private paint(row: number, element: HTMLElement): void {
    const relation = this.options.selection.relation(this.trace(row));
    element.classList.toggle('nbx-same', relation === Relation.same);
    element.classList.toggle('nbx-near', relation === Relation.line);
    element.classList.toggle('nbx-active', row === this.active);
    element.setAttribute('aria-selected', String(relation === Relation.same));
    this.decorate(row, element);
  }

  private marksOf(spot: Spot): string {
    return (this.options.decorate?.(spot) ?? []).map(({ start, end }) => `${start}-${end}`).join();
  }

  /** Cut and colour a line anew when the marks on its parts are other ones than before. */
  private decorate(row: number, element: HTMLElement): void {
    const spot = this.rows[row]!;
    const wanted = this.marksOf(spot);
    const code = element.querySelector('code');
    if (code && wanted !== element.dataset['marks']) {
      element.dataset['marks'] = wanted;
      code.replaceChildren(...(this.code(spot) as Node[]));
    }
  }

  /** Beside the scroll bar: where in the whole text the chosen lines are. */
  private rule(): void {
    const height = this.view.clientHeight;
    const all = this.rows.length * ROW > height;
    this.ruler.hidden = !all;
    const context = all ? this.ruler.getContext('2d') : null;
    if (!context) {
      return;
    }
    this.ruler.style.right = `${this.view.offsetWidth - this.view.clientWidth}px`;
    this.ruler.width = 6;
    this.ruler.height = height;
    context.fillStyle = getComputedStyle(this.node).getPropertyValue('--nbx-mark') || '#0072b2';
    const { selection } = this.options;
    this.rows.forEach((_, row) => {
      if (selection.relation(this.trace(row)) === Relation.same) {
        context.fillRect(0, (row / this.rows.length) * height, 6, 2);
      }
    });
  }

  // --------------------------------------------------------------------------- attention

  private point(event: Event): void {
    const row = rowOf(event);
    if (row !== null && row !== this.attended) {
      this.attend(row);
    }
  }

  private attend(row: number): void {
    this.attended = row;
    const spot = this.rows[row];
    if (spot) {
      this.options.selection.hover(this.trace(row));
      this.options.attend?.(spot);
    }
  }

  /** The keyboard has come: it is at the active line, which may be out of sight. */
  private focused(): void {
    const element = this.drawn.get(this.active);
    if (element) {
      this.view.setAttribute('aria-activedescendant', element.id);
    }
    this.attend(this.active);
  }

  private leave(): void {
    this.attended = -1;
    this.options.selection.hover(NOTHING);
    this.options.attend?.(null);
  }

  /** The focus that a press of the button brings is at the line under the mouse: were it at
   * another one, that line would be cut anew for its marks, and a browser sends no click to a place
   * that was replaced between press and release. */
  private aim(event: Event): void {
    this.active = rowOf(event) ?? this.active;
  }

  private click(event: Event): void {
    const row = rowOf(event);
    const marked = getSelection();
    if (row === null || (marked && !marked.isCollapsed && this.node.contains(marked.anchorNode))) {
      return; // outside, or somebody marks text to copy it
    }
    this.moveTo(row);
    this.press(row);
  }

  private press(row: number): void {
    const spot = this.rows[row];
    if (spot && spot.line < 0) {
      this.toggle(spot.section);
    } else if (spot) {
      this.options.attend?.(spot);
      this.options.selection.pin(this.trace(row));
    }
  }

  private toggle(section: number, closed = !this.folded.has(section)): void {
    this.fold(folded => (closed ? folded.add(section) : folded.delete(section)));
  }

  private moveTo(row: number): void {
    this.active = Math.max(0, Math.min(row, this.rows.length - 1));
    const top = this.active * ROW;
    const { scrollTop, clientHeight } = this.view;
    if (top < scrollTop) {
      this.view.scrollTop = top;
    } else if (top + 2 * ROW > scrollTop + clientHeight) {
      this.view.scrollTop = top + 2 * ROW - clientHeight;
    }
    this.draw();
    this.view.setAttribute('aria-activedescendant', `${this.id}-${this.active}`);
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    const page = Math.max(1, Math.floor(this.view.clientHeight / ROW) - 1);
    const moves: Record<string, number> = {
      ArrowDown: this.active + 1,
      ArrowUp: this.active - 1,
      PageDown: this.active + page,
      PageUp: this.active - page,
      Home: 0,
      End: this.rows.length - 1
    };
    const target = moves[event.key];
    if (target !== undefined) {
      this.moveTo(target);
      this.attend(this.active);
    } else if (event.key === 'Enter' || event.key === ' ') {
      this.press(this.active);
    } else if (!this.foldByKey(event.key)) {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  /** Left closes the section the active line is in, Right opens it. */
  private foldByKey(key: string): boolean {
    const section = this.rows[this.active]?.section;
    if ((key !== 'ArrowLeft' && key !== 'ArrowRight') || section === undefined) {
      return false;
    }
    if (!this.options.sections[section]?.title) {
      return false;
    }
    if (key === 'ArrowLeft') {
      this.active = this.rows.findIndex(row => row.section === section);
    }
    this.toggle(section, key === 'ArrowLeft');
    this.moveTo(this.active);
    return true;
  }
}

function same(a: Spot, b: Spot): boolean {
  return a.section === b.section && a.line === b.line;
}

function rowOf(event: Event): number | null {
  const element = (event.target as Element).closest<HTMLElement>('[data-row]');
  return element ? Number(element.dataset['row']) : null;
}
