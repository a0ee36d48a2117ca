/** Over time: this run of the cell against the one before. Knows the history of a payload. */

import { bars, figure } from './charts.js';
import { numberOf } from './colours.js';
import type { Context } from './context.js';
import { h, prose, visible } from './dom.js';
import { copyButton, tools } from './files.js';
import { seconds } from './format.js';
import { LEVELS, type Level } from './levels.js';
import type { Section } from './line.js';
import { Listing } from './listing.js';
import { comparison } from './passes.js';
import type { History } from './schema.js';
import type { View } from './views.js';

/** What changed since the previous run. */
export const HISTORY: View = {
  name: 'history',
  title: 'History',
  sections: [],
  has: payload => !!payload.history,
  make: context => history(context, context.payload.history!)
};

function history(context: Context, data: History): HTMLElement {
  const { when = '', title = '', changes = [], seconds: now, previous_seconds: before } = data;
  const about = h('div', { class: 'nbx-about' }, h('b', {}, visible(title)));
  about.append(' ', h('span', { class: 'nbx-faint' }, visible(when && `the run before was ${when}`)));
  const list = h('ul', { class: 'nbx-changes' }, ...changes.map(change => h('li', {}, ...prose(change))));
  const parts: HTMLElement[] = [about];
  if (changes.length) {
    parts.push(list);
  }
  if (now && before) {
    const rows = [
      { name: 'the run before', value: before, words: seconds(before), number: 6 },
      { name: 'this run', value: now, words: seconds(now), number: 0 }
    ];
    parts.push(figure('Run time', comparison(now, before), bars(rows)));
  }
  parts.push(...differences(context, data));
  return h('div', {}, ...parts);
}

function differences(context: Context, { diffs = [] }: History): HTMLElement[] {
  if (!diffs.length) {
    return [h('div', { class: 'nbx-empty' }, 'The code is the same at every level.')];
  }
  const sections = diffs.map(
    ({ level = '', kernel = '', lines }): Section => ({
      title: [kernel, LEVELS[level as Level] ?? level].filter(Boolean).join(' · ') || 'difference',
      number: numberOf(context.payload, kernel),
      language: 'diff',
      lines
    })
  );
  const { selection, help } = context;
  const listing = new Listing({ label: 'what changed since the run before', sections, selection, help });
  const bar = h('div', { class: 'nbx-bar' }, h('h3', { class: 'nbx-title' }, 'Differences'));
  bar.append(tools(copyButton('the differences', () => listing.text())));
  return [h('div', { class: 'nbx-pane nbx-short' }, bar, listing.node)];
}
