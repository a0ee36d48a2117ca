/**
 * Small charts as SVG: bars, ranges, a roofline, lifetimes. Each has a title in words and its
 * numbers as text, so that nothing is said by shape or colour alone. Knows numbers; it must not
 * know what they mean.
 */

import { colour, numeral } from './colours.js';
import { h, s, visible, type Child } from './dom.js';
import { meaning } from './glossary.js';

const WIDTH = 560;

/** A row of a bar chart: its name, its value, what is written beside it, and quartiles. */
export interface Bar {
  readonly name: string;
  readonly value: number | null;
  readonly words: string;
  readonly low?: number | null;
  readonly high?: number | null;
  /** A second line under the name. */
  readonly note?: string;
  /** For its colour. */
  readonly number?: number;
}

/** A figure with a title; `about` is a sentence under it. */
export function figure(title: string, about: string, ...content: Child[]): HTMLElement {
  return h(
    'figure',
    { class: 'nbx-figure' },
    h('figcaption', {}, h('b', {}, title), about && h('div', { class: 'nbx-faint' }, visible(about))),
    ...content
  );
}

/** Horizontal bars from zero; `mark` is a value all are compared with. */
export function bars(rows: readonly Bar[], mark?: { value: number; words: string }): HTMLElement {
  const values = rows.flatMap(row => [row.value ?? 0, row.high ?? 0]);
  const largest = Math.max(...values, mark?.value ?? 0) || 1;
  const share = (value: number): string => `${(100 * value) / largest}%`;
  const line = (row: Bar): HTMLElement => {
    const track = h('div', { class: 'nbx-track' });
    const bar = h('div', { class: `nbx-fill ${colour(row.number ?? 0)}` });
    bar.style.width = share(row.value ?? 0);
    track.append(bar);
    if (row.low && row.high) {
      const range = h('div', { class: 'nbx-range' });
      range.style.left = share(row.low);
      range.style.width = share(row.high - row.low);
      track.append(range);
    }
    if (mark) {
      const rule = h('div', { class: 'nbx-rule', title: mark.words });
      rule.style.left = share(mark.value);
      track.append(rule);
    }
    return h(
      'div',
      { class: 'nbx-bar-row', role: 'listitem' },
      h('span', { class: 'nbx-bar-name', title: visible(row.note || meaning(row.name) || row.name) }, visible(row.name)),
      track,
      h('span', { class: 'nbx-bar-words' }, visible(row.words))
    );
  };
  return h(
    'div',
    { class: 'nbx-bars', role: 'list' },
    ...rows.map(line),
    mark && h('div', { class: 'nbx-faint nbx-legend' }, `┊ ${mark.words}`)
  );
}

/** An axis that multiplies: its ends and how a value becomes a place on it. */
interface Scale {
  readonly low: number;
  readonly high: number;
  at(value: number): number;
}

/** Some room beyond the outermost values. */
function logScale(values: readonly number[], from: number, to: number): Scale {
  const positive = values.filter(value => value > 0);
  const low = Math.min(...positive) / 1.6;
  const high = Math.max(...positive) * 1.6;
  const span = Math.log10(high / low);
  return { low, high, at: value => from + ((to - from) * Math.log10(value / low)) / span };
}

/** Round values on an axis: powers of ten, with 2 and 5 between them when there are few. */
function ticks({ low, high }: Scale): number[] {
  const first = Math.floor(Math.log10(low));
  const decades = Array.from({ length: Math.ceil(Math.log10(high)) - first + 1 }, (_, i) => 10 ** (first + i));
  const inside = (values: number[]): number[] => values.filter(v => v >= low && v <= high);
  const powers = inside(decades);
  return powers.length >= 3 ? powers : inside(decades.flatMap(d => [d, 2 * d, 5 * d]));
}

/** A limit of a roofline: a slope (bytes per second) or a ceiling (operations per second). */
export interface Roof {
  readonly words: string;
  readonly slope?: number;
  readonly ceiling?: number;
}

/** A point of a roofline or of a plot. */
export interface Dot {
  readonly name: string;
  readonly x: number;
  readonly y: number;
  readonly number: number;
  readonly low?: number;
  readonly high?: number;
}

/** Operations per second over operations per byte, under the machine's limits. */
export function roofline(
  roofs: readonly Roof[],
  dots: readonly Dot[],
  unit: (value: number) => string
): SVGSVGElement {
  const height = 330;
  const top = Math.max(...roofs.map(r => r.ceiling ?? 0));
  const slopes = roofs.map(r => r.slope ?? 0).filter(Boolean);
  const ridges = slopes.map(slope => top / slope);
  // Two decades below the top are shown at least, so that slopes have room for their names.
  const x = logScale([...dots.map(d => d.x), ...ridges.map(r => r / 12), ...ridges.map(r => r * 4)], 64, WIDTH - 16);
  const y = logScale([...dots.map(d => d.y), top, top / 100], height - 40, 14);
  const line = (roof: Roof): SVGElement[] => {
    const ceiling = roof.ceiling ?? top;
    const left = roof.slope ? Math.max(x.low, y.low / roof.slope) : x.low;
    const right = roof.slope ? Math.min(x.high, ceiling / roof.slope) : x.high;
    const [x1, x2] = [x.at(left), x.at(right)];
    const [y1, y2] = roof.slope ? [y.at(left * roof.slope), y.at(right * roof.slope)] : [y.at(ceiling), y.at(ceiling)];
    const angle = (Math.atan2(y2 - y1, x2 - x1) * 180) / Math.PI;
    // Names of slopes, which may lie close together, at different heights.
    const share = 0.08 + 0.23 * (slopes.indexOf(roof.slope ?? 0) % 4);
    const [lx, ly] = roof.slope ? [x1 + share * (x2 - x1), y1 + share * (y2 - y1)] : [x2, y2];
    return [
      s('line', { class: 'nbx-roof', x1, y1, x2, y2 }),
      s(
        'text',
        {
          class: 'nbx-small',
          x: lx,
          y: ly - 5,
          'text-anchor': roof.slope ? 'start' : 'end',
          transform: roof.slope ? `rotate(${angle} ${lx} ${ly})` : undefined
        },
        roof.words
      )
    ];
  };
  const summary = dots.map(d => `${d.name}: ${unit(d.y)} at ${d.x.toPrecision(3)} operations per byte`).join('; ');
  return plot(height, summary, x, y, 'operations per byte', 'operations per second', short, [
    ...roofs.flatMap(line),
    ...labelled(dots, x, y, roofs.flatMap(roof => (roof.ceiling ? [y.at(roof.ceiling)] : [])))
  ]);
}

/** Values over sizes, both multiplying, with quartiles and a line at `level`. */
export function curve(
  dots: readonly Dot[],
  level: { value: number; words: string },
  xLabel: string,
  unit: (value: number) => string
): SVGSVGElement {
  const height = 240;
  const x = logScale(dots.map(d => d.x), 64, WIDTH - 24);
  const y = logScale([...dots.flatMap(d => [d.y, d.low ?? d.y, d.high ?? d.y]), level.value], height - 40, 14);
  const at = y.at(level.value);
  const path = dots.map((d, i) => `${i ? 'L' : 'M'}${x.at(d.x)} ${y.at(d.y)}`).join('');
  const summary = dots.map(d => `${d.name}: ${unit(d.y)}`).join('; ');
  return plot(height, summary, x, y, xLabel, 'times as fast', unit, [
    s('line', { class: 'nbx-level', x1: 64, x2: WIDTH - 16, y1: at, y2: at }),
    s('text', { class: 'nbx-small', x: WIDTH - 16, y: at + 12, 'text-anchor': 'end' }, level.words),
    s('path', { class: 'nbx-curve', d: path }),
    ...dots.map(d =>
      s('line', { class: 'nbx-error', x1: x.at(d.x), x2: x.at(d.x), y1: y.at(d.low ?? d.y), y2: y.at(d.high ?? d.y) })
    ),
    ...dots.map(d => s('circle', { class: 'nbx-dot', cx: x.at(d.x), cy: y.at(d.y), r: 4 }, s('title', {}, `${d.name}: ${unit(d.y)}`)))
  ]);
}

/** Dots with their numbers in them and their names beside, where there is room: not on a ceiling. */
function labelled(dots: readonly Dot[], x: Scale, y: Scale, ceilings: readonly number[]): SVGElement[] {
  return dots.flatMap(d => {
    const [cx, cy] = [x.at(d.x), y.at(d.y)];
    const before = cx > WIDTH - 180;
    const near = ceilings.find(at => Math.abs(at - cy) < 10);
    const base = near === undefined ? cy + 4 : near + 14;
    return [
      s('circle', { class: `nbx-dot ${colour(d.number)}`, cx, cy, r: 8 }, s('title', {}, visible(d.name))),
      s('text', { class: 'nbx-dot-number', x: cx, y: cy + 3.5, 'text-anchor': 'middle' }, numeral(d.number)),
      s('text', { x: before ? cx - 13 : cx + 13, y: base, 'text-anchor': before ? 'end' : 'start' }, visible(d.name))
    ];
  });
}

function plot(
  height: number,
  summary: string,
  x: Scale,
  y: Scale,
  xLabel: string,
  yLabel: string,
  tick: (value: number) => string,
  content: SVGElement[]
): SVGSVGElement {
  const [left, right, bottom] = [x.at(x.low), x.at(x.high), y.at(y.low)];
  const vertical = ticks(x).map(value =>
    s(
      'g',
      {},
      s('line', { class: 'nbx-grid', x1: x.at(value), x2: x.at(value), y1: y.at(y.high), y2: bottom }),
      s('text', { class: 'nbx-small', x: x.at(value), y: bottom + 14, 'text-anchor': 'middle' }, short(value))
    )
  );
  const horizontal = ticks(y).map(value =>
    s(
      'g',
      {},
      s('line', { class: 'nbx-grid', x1: left, x2: right, y1: y.at(value), y2: y.at(value) }),
      s('text', { class: 'nbx-small', x: left - 6, y: y.at(value) + 3, 'text-anchor': 'end' }, tick(value))
    )
  );
  return s(
    'svg',
    { class: 'nbx-plot', viewBox: `0 0 ${WIDTH} ${height}`, role: 'img', 'aria-label': visible(summary) },
    ...vertical,
    ...horizontal,
    s('text', { class: 'nbx-small', x: (left + right) / 2, y: height - 8, 'text-anchor': 'middle' }, xLabel),
    s('text', { class: 'nbx-small', x: 14, y: (y.at(y.high) + bottom) / 2, 'text-anchor': 'middle', transform: `rotate(-90 14 ${(y.at(y.high) + bottom) / 2})` }, yLabel),
    ...content
  );
}

/** A round number on an axis. */
function short(value: number): string {
  for (const [prefix, scale] of [['T', 1e12], ['G', 1e9], ['M', 1e6], ['k', 1e3]] as const) {
    if (value >= 0.999 * scale) {
      return `${+(value / scale).toPrecision(3)} ${prefix}`;
    }
  }
  return String(+value.toPrecision(3));
}

/** A word, with what it means for whoever points at it. */
export function word(text: string): HTMLElement {
  const title = meaning(text);
  return h('span', { class: title ? 'nbx-helped' : '', title: title || undefined }, visible(text));
}

/** A table; columns named in `right` hold numbers, the one named in `wrap` sentences. */
export function table(
  head: readonly string[],
  rows: readonly (readonly Child[])[],
  right: readonly number[] = [],
  wrap = -1
): HTMLElement {
  const side = (i: number): string => (right.includes(i) ? 'nbx-right' : i === wrap ? 'nbx-wrap' : '');
  const scroll = h('div', { class: 'nbx-scroll' });
  scroll.append(
    h(
      'table',
      { class: 'nbx-table' },
      h('thead', {}, h('tr', {}, ...head.map((name, i) => h('th', { class: side(i), scope: 'col' }, word(name))))),
      h(
        'tbody',
        {},
        ...rows.map(row => h('tr', {}, ...row.map((cell, i) => h('td', { class: side(i) }, cell))))
      )
    )
  );
  return scroll;
}
