/**
 * The explorer: the headline, what needs to be noticed, and the views of one compilation. This is
 * the core's only entry: give it an element and what arrived. Knows the views; it must not know
 * Jupyter.
 */

import { Context } from './context.js';
import { CPUS } from './cpus.js';
import { DECISIONS } from './decisions.js';
import { button, h, prose, visible, type Child } from './dom.js';
import { HISTORY } from './history.js';
import { Inspector } from './inspector.js';
import { Levels } from './levels.js';
import { follow } from './live.js';
import { NUMBERS } from './numbers.js';
import { PASSES } from './passes.js';
import { read } from './payload.js';
import type { Payload } from './schema.js';
import { Search } from './search.js';
import { attachStyle } from './style.js';
import { Tabs, type Tab } from './tabs.js';
import type { View } from './views.js';

export interface ExploreOptions {
  /** The form of the same output without an explorer. */
  readonly plain?: string;
  /** Opens the explorer in more room: a panel, or a page of its own. */
  readonly open?: { readonly label: string; readonly act: (data: unknown) => void };
}

/** The views beside the levels, in the order of their tabs. */
const VIEWS: readonly View[] = [DECISIONS, NUMBERS, PASSES, CPUS, HISTORY];

const STATUS: Record<NonNullable<Payload['status']>, string> = {
  faster: 'faster than NumPy',
  same: 'as fast as NumPy',
  slower: 'slower than NumPy',
  wrong: 'wrong answer',
  numpy: 'ran in NumPy',
  untimed: 'not timed'
};

/** Show a compilation in an element. What cannot be read becomes a notice and the plain form. */
export function explore(host: HTMLElement, data: unknown, options: ExploreOptions = {}): void {
  attachStyle(host.ownerDocument);
  const root = h('div', { class: 'nbx' });
  try {
    const { payload, problems } = read(data);
    const notices = problems.map(problem => notice(problem));
    root.append(...notices, payload ? explorer(payload, data, options) : plain(options.plain));
  } catch (error) {
    const words = 'The explorer cannot show this output; please report it as a bug of nbcomp';
    root.replaceChildren(notice(`${words} (${String(error)}).`), plain(options.plain));
  }
  host.replaceChildren(root);
}

function notice(text: string, ...more: Child[]): HTMLElement {
  return h('div', { class: 'nbx-notice', role: 'note' }, visible(text), ...more);
}

function plain(text = ''): HTMLElement {
  return h('pre', { class: 'nbx-plain' }, visible(text));
}

function explorer(payload: Payload, data: unknown, options: ExploreOptions): HTMLElement {
  const inspector = new Inspector(payload.kernels ?? []);
  const context = new Context(payload, note => inspector.show(note));
  context.selection.listen(() => inspector.keep(context.selection.pinned));
  const tabs = new Tabs(viewTabs(context, inspector), 'views of the compilation', 'nbx-views');
  const search = new Search(context, () => tabs.choose('levels'));
  const { open } = options;
  const bar = h('div', { class: 'nbx-bar nbx-top' }, tabs.list);
  bar.append(h('div', { class: 'nbx-tools' }, context.searchables.length ? search.node : ''));
  if (open) {
    bar.lastElementChild?.append(button('Open', open.label, () => open.act(data)));
  }
  const section = h('section', { class: 'nbx-explorer', 'aria-label': `compilation of ${visible(payload.name)}` });
  const outdated = h('div', {});
  follow(outdated, payload.id ?? '', payload.stale ?? [], showStale);
  section.append(headline(payload), outdated);
  if (tabs.current) {
    section.append(bar, tabs.panels);
  }
  section.addEventListener('keydown', event => {
    if (event.key === 'Escape') {
      context.selection.clear();
      event.stopPropagation();
    } else if (event.key === '/' && !(event.target instanceof HTMLInputElement)) {
      search.focus();
      event.preventDefault();
      event.stopPropagation();
    }
  });
  return section;
}

function headline({ title, sentences, status = 'untimed' }: Payload): HTMLElement {
  return h(
    'header',
    { class: `nbx-headline nbx-status-${status}` },
    h('h2', {}, visible(title)),
    h('ul', { 'aria-label': STATUS[status] }, ...sentences.map(sentence => h('li', {}, ...prose(sentence))))
  );
}

function showStale(node: HTMLElement, reasons: readonly string[]): void {
  const words = `Out of date: ${reasons.join('; ')}. Run the cell again.`;
  node.replaceChildren(...(reasons.length ? [notice(words)] : []));
}

function viewTabs(context: Context, inspector: Inspector): Tab[] {
  const { payload } = context;
  const tabs: Tab[] = [];
  const hasLevels = payload.source || payload.graphs?.after || payload.graphs?.before || payload.kernels?.length;
  if (hasLevels) {
    const levels = new Levels(context, inspector.node);
    tabs.push({ name: 'levels', title: 'Levels', make: () => levels.node });
  }
  for (const view of VIEWS) {
    if (view.has(payload)) {
      tabs.push({ name: view.name, title: view.title, make: () => view.make(context) });
    }
  }
  const [only] = payload.show?.length === 1 ? payload.show : [];
  const first = tabs.findIndex(tab => VIEWS.find(v => v.name === tab.name)?.sections.includes(only ?? ''));
  return first > 0 ? [...tabs.splice(first, 1), ...tabs] : tabs;
}
