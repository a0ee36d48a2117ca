/**
 * One line of a listing, or the header of a section, as an element. Knows lines, their colours and
 * marks; it must not know the listing they are in.
 */

import { swatch } from './colours.js';
import { h, visible, type Child } from './dom.js';
import type { Trace } from './selection.js';
import { pieces, tokens, type Language, type Span } from './tokens.js';

/** A foldable run of lines: a kernel at one level, or a file. Without a title it has no header. */
export interface Section {
  readonly title: string;
  readonly detail?: string;
  /** For its colour; -1: none. */
  readonly number: number;
  readonly language: Language;
  /** What the keys of its words' help begin with, if not as the language's do. */
  readonly notation?: string;
  readonly lines: readonly string[];
  readonly traces?: readonly Trace[];
  /** A word at the right of a line: the compiler's construct. */
  readonly notes?: readonly string[];
}

/** Where a line is: its section, and its index there (-1: the header). */
export interface Spot {
  readonly section: number;
  readonly line: number;
}

export interface Hit extends Spot {
  readonly start: number;
  readonly end: number;
}

/** The line that names a section, and folds it. */
export function header({ title, detail, number }: Section, open: boolean): HTMLElement {
  return h(
    'div',
    { class: 'nbx-head', role: 'treeitem', 'aria-level': 1, 'aria-expanded': String(open) },
    h('span', { class: 'nbx-twist', 'aria-hidden': true }, open ? '▾' : '▸'),
    swatch(number),
    h('b', {}, visible(title)),
    detail && h('span', { class: 'nbx-faint' }, visible(detail))
  );
}

/** A line of code: what is before it, the code in pieces, and its note. */
export function codeLine(section: Section, line: number, before: Child[], code: Child[]): HTMLElement {
  const note = section.notes?.[line];
  const kind = change(section.language, section.lines[line] ?? '');
  return h(
    'div',
    { class: `nbx-line ${kind}`, role: 'treeitem', 'aria-level': section.title ? 2 : 1 },
    ...before,
    h('code', { class: 'nbx-text' }, ...code),
    note && h('span', { class: 'nbx-note' }, visible(note))
  );
}

/** A line in coloured pieces, with marks on some, and the help of words that have any. */
export function coloured(
  text: string,
  { language, notation }: Section,
  marks: readonly Span[],
  help: (key: string) => string
): Child[] {
  const spans = [...tokens(text, language, key => !!help(key), notation), ...marks];
  return pieces(text, spans).map(piece => {
    const title = piece.help ? help(piece.help) : undefined;
    const kinds = [...piece.kinds, ...(title ? ['nbx-helped'] : [])].join(' ');
    return kinds ? h('span', { class: kinds, title }, visible(piece.text)) : visible(piece.text);
  });
}

/** The class of a line that a difference adds or removes. */
function change(language: Language, text: string): string {
  const kinds: Record<string, string> = language === 'diff' ? { '+': 'nbx-added', '-': 'nbx-removed' } : {};
  return kinds[text[0] ?? ''] ?? '';
}

/** Where a lower-case text occurs in a line, whatever the case there. */
export function occurrences(text: string, query: string): [number, number][] {
  const found: [number, number][] = [];
  const lower = text.toLowerCase();
  for (let at = lower.indexOf(query); query && at >= 0; at = lower.indexOf(query, at + query.length)) {
    found.push([at, at + query.length]);
  }
  return found;
}
