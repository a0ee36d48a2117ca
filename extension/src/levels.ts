/**
 * The levels of the compilation next to the source: graph, loops, LLVM IR, assembly, as tabs or
 * side by side. Knows the levels' views and the selection that ties them together.
 */

import type { Context, Note, Searchable } from './context.js';
import { button, h, visible } from './dom.js';
import { copyButton, saveButton, tools } from './files.js';
import { Graph } from './graph.js';
import type { Hit, Section, Spot } from './line.js';
import { Listing } from './listing.js';
import type { Box, Drawing } from './schema.js';
import { sourceListing } from './source.js';
import { Tabs, type Tab } from './tabs.js';
import { tokens } from './tokens.js';

export type Level = 'loop' | 'llvm' | 'asm';
export const LEVELS: Record<Level, string> = { loop: 'Loops', llvm: 'LLVM IR', asm: 'Assembly' };
const SUFFIX: Record<Level, string> = { loop: 'loops.txt', llvm: 'll', asm: 's' };
const WIDE = 1500; // pixels from which the levels are first shown side by side

/** What every level's view can do. */
interface Pane {
  readonly node: HTMLElement;
  related(): number;
  revealRelated(): void;
}

export class Levels {
  readonly node: HTMLElement;
  private readonly tabs: Tabs;
  private readonly panes = new Map<string, Pane>();
  private readonly split = button('Side by side', 'Show all levels side by side', () => this.columns());
  private all = false;
  private frame = 0;

  constructor(
    private readonly context: Context,
    private readonly inspector: HTMLElement
  ) {
    const left = this.source();
    this.tabs = new Tabs(this.levelTabs(), 'levels', 'nbx-level-tabs');
    this.split.setAttribute('aria-pressed', 'false');
    const bar = h('div', { class: 'nbx-bar' }, this.tabs.list, left ? null : tools(this.split));
    const right = h('div', { class: 'nbx-levels' }, bar, this.tabs.panels);
    const kind = left ? '' : 'nbx-sourceless';
    this.node = h('div', { class: `nbx-workbench ${kind}` }, left, this.panes.size > (left ? 1 : 0) ? right : null, left ? null : inspector);
    if (context.payload.show?.join() === 'kernels') {
      this.tabs.choose('loop');
    }
    context.selection.listen(() => {
      this.frame ||= requestAnimationFrame(() => this.follow());
    });
    const watch = new ResizeObserver(([entry]) => {
      if (entry && entry.contentRect.width) {
        watch.disconnect();
        if (entry.contentRect.width >= WIDE) {
          this.columns();
        }
      }
    });
    watch.observe(this.node);
  }

  private source(): HTMLElement | null {
    const { source } = this.context.payload;
    if (!source?.lines.length) {
      return null;
    }
    const listing = sourceListing(this.context, source);
    this.panes.set('source', listing);
    this.context.searchables.push(searchable('source', listing, () => undefined));
    const bar = h('div', { class: 'nbx-bar' }, h('h3', { class: 'nbx-title' }, 'Source'));
    bar.append(tools(this.split, copyButton('the source', () => listing.text())));
    return h('div', { class: 'nbx-source' }, bar, listing.node, this.inspector);
  }

  private levelTabs(): Tab[] {
    const { graphs = {} } = this.context.payload;
    const tabs: Tab[] = [];
    if (graphs.after ?? graphs.before) {
      tabs.push(this.tab('graph', 'Graph', new GraphPane(this.context, graphs)));
    }
    for (const level of ['loop', 'llvm', 'asm'] as const) {
      const sections = sectionsOf(this.context, level);
      if (sections.length) {
        tabs.push(this.tab(level, LEVELS[level], new TextPane(this.context, level, sections)));
      }
    }
    return tabs;
  }

  private tab(name: string, title: string, pane: Pane & { searchable(show: () => void): Searchable[] }): Tab {
    this.panes.set(name, pane);
    this.context.searchables.push(...pane.searchable(() => this.tabs.choose(name)));
    const shown = (): void => {
      if (this.context.selection.pinned) {
        requestAnimationFrame(() => pane.revealRelated());
      }
    };
    return { name, title, make: () => pane.node, shown, keep: name === 'graph' };
  }

  private columns(): void {
    this.all = !this.all;
    this.split.setAttribute('aria-pressed', String(this.all));
    this.node.classList.toggle('nbx-side-by-side', this.all);
    this.tabs.showAll(this.all);
  }

  /** Say in each tab how much of the selection is there; a pinned one is brought into sight. */
  private follow(): void {
    this.frame = 0;
    const { selection } = this.context;
    for (const [name, pane] of this.panes) {
      this.tabs.badge(name, selection.empty ? 0 : pane.related());
      if (selection.pinned) {
        pane.revealRelated();
      }
    }
  }
}

function sectionsOf(context: Context, level: Level): Section[] {
  return context.kernels.flatMap(kernel => {
    const text = kernel.texts[level];
    if (!text) {
      return [];
    }
    const { lines, traces, notes } = context.lines(text);
    const total = text.total ?? lines.length;
    const cut = text.cut ? ` · the first ${lines.length} of ${total} lines` : '';
    const detail = `${kernel.kind} · ${kernel.operators ?? ''}${cut}`;
    const { notation } = text;
    return [{ title: kernel.name, detail, number: kernel.number, language: level, notation, lines, traces, notes }];
  });
}

/** One level of all kernels. */
class TextPane implements Pane {
  readonly node: HTMLElement;
  private readonly listing: Listing;

  constructor(
    context: Context,
    private readonly level: Level,
    private readonly sections: readonly Section[]
  ) {
    this.listing = new Listing({
      label: LEVELS[level],
      sections,
      selection: context.selection,
      help: context.help,
      gutter: spot => [this.lineNumbers(spot)],
      attend: spot => context.attend(spot && lineNote(context, LEVELS[level], sections, spot))
    });
    const file = `${context.payload.name}.${SUFFIX[level]}`;
    const text = (): string => this.listing.text();
    const folds = sections.length > 1 ? foldButtons(closed => this.listing.foldAll(closed)) : [];
    const title = h('h3', { class: 'nbx-title nbx-column-title' }, LEVELS[level]);
    const what = `the ${LEVELS[level]}`;
    this.node = h('div', { class: 'nbx-pane' });
    this.node.append(
      h('div', { class: 'nbx-bar' }, title, tools(...folds, copyButton(what, text), saveButton(what, file, text))),
      this.listing.node
    );
  }

  related(): number {
    return this.listing.related();
  }

  revealRelated(): void {
    this.listing.revealRelated();
  }

  searchable(show: () => void): Searchable[] {
    return [searchable(this.level, this.listing, show)];
  }

  /** The user's lines a line comes from. */
  private lineNumbers({ section, line }: Spot): HTMLElement {
    const lines = this.sections[section]?.traces?.[line]?.lines ?? [];
    const text = lines.length > 2 ? `${lines[0]}–${lines[lines.length - 1]}` : lines.join(',');
    const title = lines.length ? `from line ${lines.join(', ')}` : undefined;
    return h('span', { class: 'nbx-number nbx-origin', title }, text);
  }
}

/** What is said of a line: its expressions, its construct, and what its words mean. */
export function lineNote(
  context: Context,
  heading: string,
  sections: readonly Section[],
  { section, line }: Spot
): Note {
  const { lines, traces, notes, title, detail = '' } = sections[section]!;
  if (line < 0) {
    return { heading: title, remarks: [], facts: [detail] };
  }
  const text = lines[line] ?? '';
  const trace = traces?.[line];
  const construct = trace && trace.construct >= 0 ? context.payload.constructs?.[trace.construct] : notes?.[line];
  return {
    heading,
    code: text.trim(),
    remarks: [],
    facts: [
      ...(trace ? context.expressions(trace) : []),
      construct ? `${construct}: ${context.help(`construct:${construct}`) || 'added by the compiler'}` : '',
      ...meanings(context, text, sections[section]!)
    ]
  };
}

function meanings(context: Context, text: string, { language, notation }: Section): string[] {
  const keys = tokens(text, language, key => !!context.help(key), notation).map(token => token.help ?? '');
  return [...new Set(keys.filter(Boolean))].map(key => `\`${key.split(':')[1]}\`: ${context.help(key)}`);
}

/** The graph as written and after the passes. */
class GraphPane implements Pane {
  readonly node: HTMLElement;
  private readonly graphs: Graph[];
  private readonly which: HTMLElement;
  private current: number;

  constructor(context: Context, drawings: { before?: Drawing; after?: Drawing }) {
    const named = [
      ['As written', drawings.before],
      ['After the passes', drawings.after]
    ].filter((pair): pair is [string, Drawing] => !!pair[1]);
    this.graphs = named.map(
      ([, drawing]) =>
        new Graph({
          drawing,
          places: context.places,
          selection: context.selection,
          help: context.help,
          attend: box => context.attend(box && boxNote(context, box))
        })
    );
    this.current = this.graphs.length - 1;
    this.which = h('div', { class: 'nbx-choice', role: 'group', 'aria-label': 'which graph' });
    this.which.append(...named.map(([name], i) => button(name, `The graph ${name.toLowerCase()}`, () => this.choose(i))));
    const graph = (): Graph => this.graphs[this.current]!;
    const folds = this.graphs.some(g => g.folds) ? foldButtons(closed => this.graphs.forEach(g => g.foldAll(closed))) : [];
    const zoom = [
      button('−', 'Zoom out', () => graph().zoom(0.8), 'nbx-icon'),
      button('+', 'Zoom in', () => graph().zoom(1.25), 'nbx-icon'),
      button('Fit', 'Fit the graph into the pane', () => graph().fit())
    ];
    const save = saveButton('the picture', `${context.payload.name}.svg`, () => graph().text());
    this.node = h('div', { class: 'nbx-pane' });
    this.node.append(
      h('div', { class: 'nbx-bar' }, this.which, tools(...folds, ...zoom, save)),
      ...this.graphs.map(g => g.node as unknown as HTMLElement)
    );
    this.choose(this.current);
  }

  related(): number {
    return this.graphs[this.current]!.related();
  }

  revealRelated(): void {
    this.graphs[this.current]!.revealRelated();
  }

  searchable(show: () => void): Searchable[] {
    return this.graphs.map((graph, i) => {
      let found: number[] = [];
      return {
        name: 'graph',
        find: query => (found = query ? graph.find(query) : []).length,
        reveal: index => {
          if (index !== null) {
            show();
            this.choose(i);
          }
          graph.mark(found, index === null ? null : found[index] ?? null);
        }
      };
    });
  }

  private choose(index: number): void {
    this.current = index;
    this.graphs.forEach((graph, i) => graph.node.classList.toggle('nbx-hidden', i !== index));
    [...this.which.children].forEach((b, i) => b.setAttribute('aria-pressed', String(i === index)));
  }
}

function boxNote(context: Context, box: Box): Note {
  const word = box.title.split(/[(\s]/)[0] ?? '';
  const facts = (box.tip ?? '').split('\n').filter(line => line !== box.title);
  return {
    heading: visible(box.title),
    remarks: [],
    facts: [...facts.map(fact => fact.replace(/`/g, "'")), context.help(`op:${word}`)]
  };
}

export function foldButtons(fold: (closed: boolean) => void): HTMLButtonElement[] {
  return [
    button('Fold', 'Fold all kernels and layers', () => fold(true)),
    button('Unfold', 'Unfold all kernels and layers', () => fold(false))
  ];
}

/** A listing as something to search in. */
export function searchable(name: string, listing: Listing, show: () => void): Searchable {
  let hits: Hit[] = [];
  return {
    name,
    find: query => (hits = query ? listing.find(query) : []).length,
    reveal: index => {
      if (index !== null) {
        show();
      }
      listing.mark(hits, index === null ? null : hits[index] ?? null);
    }
  };
}

