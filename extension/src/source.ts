/**
 * The user's own lines: beside each one what was decided there, and what it costs. Knows the source
 * section of a payload and the listing.
 */

import type { Context, Note } from './context.js';
import { h, type Child } from './dom.js';
import { count, percent } from './format.js';
import { SIGNS } from './inspector.js';
import type { Spot } from './line.js';
import { Listing } from './listing.js';
import type { Mark, Place, Source } from './schema.js';
import type { Span } from './tokens.js';

/** The source as a listing with marks and a column of costs. */
export function sourceListing(context: Context, source: Source): Listing {
  const number = (spot: Spot): number => source.first + spot.line;
  const highest = Math.max(...(source.cost ?? []).map(c => c ?? 0), 0);
  return new Listing({
    label: 'source',
    selection: context.selection,
    help: context.help,
    sections: [
      {
        title: '',
        number: -1,
        language: 'python',
        lines: source.lines,
        traces: source.lines.map((_, i) => context.places.ofLine(source.first + i))
      }
    ],
    gutter: spot => gutter(context, number(spot), source.cost?.[spot.line] ?? null, highest),
    decorate: spot => chosenSpans(context, number(spot), source.lines[spot.line] ?? ''),
    attend: spot => context.attend(spot && note(context, source, number(spot)))
  });
}

function gutter(context: Context, line: number, cost: number | null, highest: number): Child[] {
  const cells: Child[] = [h('span', { class: 'nbx-number', 'aria-hidden': true }, String(line))];
  if (highest) {
    cells.push(heat(cost, highest));
  }
  if (context.payload.source?.marks?.length) {
    cells.push(sign(context.marks(line)));
  }
  return cells;
}

/** A bar as long as the line's share of the run time. */
function heat(cost: number | null, highest: number): HTMLElement {
  const words = cost === null ? '' : percent(cost);
  const cell = h('span', { class: 'nbx-heat', title: words && `${words} of the run time` }, words);
  if (cost !== null) {
    cell.style.setProperty('--nbx-share', `${(100 * cost) / highest}%`);
  }
  return cell;
}

/** What is worth most attention among a line's decisions, and how many there are. */
function sign(marks: readonly Mark[]): HTMLElement {
  const kinds = ['missed', 'applied', 'analysis'] as const;
  const kind = kinds.find(k => marks.some(m => m.mark === k));
  if (!kind) {
    return h('span', { class: 'nbx-sign' });
  }
  const title = marks.map(m => `${SIGNS[m.mark].sign} ${m.topic}: ${m.reason}`).join('\n');
  return h(
    'span',
    { class: `nbx-sign nbx-${kind}`, role: 'img', 'aria-label': count(marks.length, 'decision'), title },
    SIGNS[kind].sign
  );
}

/** The expressions on a line that are chosen, so that they can be underlined. */
function chosenSpans({ places, selection }: Context, line: number, text: string): Span[] {
  if (!selection.hasLine(line)) {
    return [];
  }
  return places.all.flatMap((place, index) =>
    selection.hasPlace(index) && covers(place, line) ? [span(place, line, text)] : []
  );
}

function covers(place: Place, line: number): boolean {
  return place.line <= line && line <= Math.max(place.end_line ?? 0, place.line);
}

function span(place: Place, line: number, text: string): Span {
  const last = Math.max(place.end_line ?? 0, place.line);
  const indent = text.length - text.trimStart().length;
  const start = line === place.line ? place.column ?? 0 : indent;
  const end = line === last && place.end_column ? place.end_column : text.length;
  return { start, end, kind: 'nbx-span' };
}

function note(context: Context, source: Source, line: number): Note {
  const cost = source.cost?.[line - source.first];
  return {
    heading: `line ${line}`,
    code: context.sourceLine(line).trim(),
    remarks: context.marks(line),
    facts: [cost === null || cost === undefined ? '' : `${percent(cost)} of the run time`]
  };
}
