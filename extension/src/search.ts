/**
 * Searching in all texts at once: how often, which one, the next. Knows what can be searched by
 * `Searchable` only.
 */

import type { Context } from './context.js';
import { button, h, keepKeys } from './dom.js';

const DELAY = 120; // milliseconds after the last key

export class Search {
  readonly node: HTMLElement;
  private readonly input = h('input', {
    type: 'search',
    class: 'nbx-search',
    placeholder: 'Search all levels',
    'aria-label': 'Search all levels',
    spellcheck: 'false'
  });
  private readonly count = h('span', { class: 'nbx-count', role: 'status' });
  private counts: number[] = [];
  private at = -1;
  private query = '';
  private timer = 0;

  /** `show` brings what is searched into sight. */
  constructor(
    private readonly context: Context,
    private readonly show: () => void
  ) {
    keepKeys(this.input);
    this.input.addEventListener('input', () => {
      clearTimeout(this.timer);
      this.timer = window.setTimeout(() => this.look(), DELAY);
    });
    this.input.addEventListener('keydown', event => this.key(event));
    this.node = h(
      'div',
      { class: 'nbx-searchbar', role: 'search' },
      this.input,
      this.count,
      button('↑', 'Previous occurrence', () => this.go(-1), 'nbx-icon'),
      button('↓', 'Next occurrence', () => this.go(1), 'nbx-icon')
    );
  }

  focus(): void {
    this.input.focus();
    this.input.select();
  }

  private look(): void {
    clearTimeout(this.timer);
    this.query = this.input.value.toLowerCase();
    this.counts = this.context.searchables.map(item => item.find(this.query));
    this.at = -1;
    if (this.total) {
      this.go(1);
    } else {
      this.context.searchables.forEach(item => item.reveal(null));
      this.say();
    }
  }

  private get total(): number {
    return this.counts.reduce((sum, n) => sum + n, 0);
  }

  private go(step: number): void {
    if (this.input.value.toLowerCase() !== this.query) {
      this.look();
      return;
    }
    if (!this.total) {
      return;
    }
    this.show();
    this.at = (this.at + step + this.total) % this.total;
    let left = this.at;
    this.context.searchables.forEach((item, i) => {
      const here = left >= 0 && left < this.counts[i]!;
      item.reveal(here ? left : null);
      left = here ? -1 : left - this.counts[i]!;
    });
    this.say();
  }

  private say(): void {
    const found = this.total ? `${this.at + 1} of ${this.total}` : 'none';
    this.count.textContent = this.query ? found : '';
  }

  private key(event: KeyboardEvent): void {
    if (event.key === 'Enter') {
      this.go(event.shiftKey ? -1 : 1);
      event.preventDefault();
    } else if (event.key === 'Escape' && this.input.value) {
      this.input.value = '';
      this.look();
    } else {
      return;
    }
    event.stopPropagation();
  }
}
