/**
 * Tabs as the ARIA practices describe them: arrow keys move and choose, one stop for the Tab key,
 * a panel per tab that is filled when it is first shown. Knows nothing of what is in them.
 */

import { h, keepKeys, uniqueId } from './dom.js';

export interface Tab {
  readonly name: string;
  readonly title: string;
  /** Makes the content, when the tab is first shown. */
  readonly make: () => Node;
  /** Called each time it is shown. */
  readonly shown?: () => void;
  /** Stays laid out while another one is shown, because laying it out again is slow. */
  readonly keep?: boolean;
}

export class Tabs {
  readonly list: HTMLElement;
  readonly panels: HTMLElement;
  current = '';
  private readonly buttons = new Map<string, HTMLButtonElement>();
  private readonly bodies = new Map<string, HTMLElement>();
  private readonly made = new Set<string>();

  constructor(
    private readonly tabs: readonly Tab[],
    label: string,
    kind = ''
  ) {
    this.list = h('div', { class: `nbx-tabs ${kind}`, role: 'tablist', 'aria-label': label });
    this.panels = h('div', { class: 'nbx-panels' });
    tabs.forEach(tab => this.add(tab));
    this.list.addEventListener('keydown', event => this.key(event));
    if (tabs[0]) {
      this.choose(tabs[0].name);
    }
  }

  private add(tab: Tab): void {
    const [id, panel] = [uniqueId('tab'), uniqueId('panel')];
    const chooser = h(
      'button',
      { type: 'button', class: 'nbx-tab', role: 'tab', id, 'aria-controls': panel, tabindex: -1 },
      tab.title,
      h('span', { class: 'nbx-badge' })
    );
    keepKeys(chooser);
    chooser.addEventListener('click', () => this.choose(tab.name));
    const body = h('div', { class: 'nbx-panel', role: 'tabpanel', id: panel, 'aria-labelledby': id });
    this.buttons.set(tab.name, chooser);
    this.bodies.set(tab.name, body);
    this.list.append(chooser);
    this.panels.append(body);
  }

  /** Show a tab. */
  choose(name: string): void {
    const tab = this.tabs.find(t => t.name === name);
    if (!tab) {
      return;
    }
    this.current = name;
    for (const [other, chooser] of this.buttons) {
      chooser.setAttribute('aria-selected', String(other === name));
      chooser.tabIndex = other === name ? 0 : -1;
    }
    this.tabs.forEach(other => this.away(other, other !== tab));
    this.fill(tab);
    tab.shown?.();
  }

  /** Show all panels at once, or only the current one. */
  showAll(all: boolean): void {
    this.panels.classList.toggle('nbx-all', all);
    for (const tab of this.tabs) {
      this.away(tab, !all && tab.name !== this.current);
      if (all) {
        this.fill(tab);
      }
    }
  }

  /** A number beside a tab's title; 0: none. */
  badge(name: string, number: number): void {
    const badge = this.buttons.get(name)?.querySelector('.nbx-badge');
    if (badge && badge.textContent !== (number ? String(number) : '')) {
      badge.textContent = number ? String(number) : '';
    }
  }

  private away({ name, keep }: Tab, away: boolean): void {
    const body = this.bodies.get(name)!;
    if (keep) {
      body.classList.toggle('nbx-away', away);
    } else {
      body.hidden = away;
    }
  }

  private fill(tab: Tab): void {
    if (!this.made.has(tab.name)) {
      this.made.add(tab.name);
      this.bodies.get(tab.name)!.append(tab.make());
    }
  }

  private key(event: KeyboardEvent): void {
    const names = this.tabs.map(tab => tab.name);
    const at = names.indexOf(this.current);
    const moves: Record<string, number> = {
      ArrowRight: (at + 1) % names.length,
      ArrowLeft: (at + names.length - 1) % names.length,
      Home: 0,
      End: names.length - 1
    };
    const target = moves[event.key];
    if (target === undefined) {
      return;
    }
    const name = names[target]!;
    this.choose(name);
    this.buttons.get(name)?.focus();
    event.preventDefault();
    event.stopPropagation();
  }
}
