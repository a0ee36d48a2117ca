/**
 * The numbers of a compilation: speed, what limits each kernel, what each optimisation is worth,
 * where compile time goes, memory over time. Knows the sections of a payload with numbers.
 */

import { bars, curve, figure, roofline, table, word, type Roof } from './charts.js';
import { colour, numberOf, swatch } from './colours.js';
import type { Context } from './context.js';
import { h, prose, s, visible, type Child } from './dom.js';
import { bytes, count, digits, percent, seconds, si } from './format.js';
import type { Buffer, Check, Machine, Memory, Numbers, Payload } from './schema.js';
import type { View } from './views.js';

type Part = (payload: Payload) => HTMLElement | null;

const UNUSED = 'not used here'; // the note of an optimisation that changed nothing

const LEFT_OUT = 'text'; // the fact that says why there is no text

const PARTS: readonly Part[] = [
  kernelNumbers,
  speed,
  checks,
  ablation,
  stages,
  roof,
  instructions,
  memory,
  provenance
];

/** The view with all figures that this payload has. */
export const NUMBERS: View = {
  name: 'numbers',
  title: 'Numbers',
  sections: ['speed', 'check'],
  has: payload => PARTS.some(part => part(payload)),
  make: ({ payload }: Context) =>
    h('div', { class: 'nbx-figures' }, ...PARTS.map(part => part(payload)).filter((f): f is HTMLElement => !!f))
};

function speed({ speed: rows = [], speed_notes: notes = [] }: Payload): HTMLElement | null {
  if (!rows.length && !notes.length) {
    return null;
  }
  const times = (ratio: number): string => `${ratio >= 10 ? ratio.toFixed(0) : +ratio.toPrecision(3)}×`;
  const dots = rows
    .filter(r => (r.ratio ?? 0) > 0 && r.size > 0)
    .map(r => ({ name: `batch ${r.size}`, x: r.size, y: r.ratio!, number: 0, low: r.low ?? r.ratio!, high: r.high ?? r.ratio! }));
  const picture = dots.length > 1 ? curve(dots, { value: 1, words: 'NumPy' }, 'batch size', times) : null;
  const cells = rows.map(r => [
    r.size.toLocaleString('en'),
    seconds(r.ours),
    seconds(r.theirs),
    r.ratio ? `${digits(r.ratio)}×` : '–',
    r.low && r.high ? `${digits(r.low)}–${digits(r.high)}` : '',
    visible(r.verdict ?? '')
  ]);
  const head = ['batch', 'compiled', 'NumPy', 'speed-up', 'quartiles', ''];
  return figure(
    'Speed-up over NumPy',
    notes.join('; '),
    picture,
    rows.length ? table(head, cells, [0, 1, 2, 3, 4]) : null
  );
}

function checks({ checks: rows = [] }: Payload): HTMLElement | null {
  const mark = (c: Check): string => (c.problem ? '✗ ' : c.ulp === undefined || c.ulp === null ? '' : '✓ ');
  const cells = rows.map(c => [visible(c.level), visible(`${mark(c)}${c.words ?? (c.problem || 'right')}`)]);
  return rows.length ? figure('Every level run by itself', '', table(['level', 'answer'], cells, [], 1)) : null;
}

function kernelNumbers(payload: Payload): HTMLElement | null {
  const rows = payload.numbers?.kernels ?? [];
  if (!rows.length) {
    return null;
  }
  const cells = rows.map(k => [
    kernelName(k.kernel, numberOf(payload, k.kernel)),
    seconds(k.seconds),
    si(k.operations),
    k.bytes ? bytes(k.bytes) : '–',
    k.intensity ? digits(k.intensity) : '–',
    si(k.flops_per_second, 'FLOP/s'),
    limit(k.bound, k.of_limit)
  ]);
  const head = ['kernel', 'time', 'operations', 'memory', 'op/byte', 'rate', 'limited by'];
  const made = figure('Kernels', '', table(head, cells, [1, 2, 3, 4, 5]));
  made.classList.add('nbx-wide');
  return made;
}

function limit(bound = '', share: number | null | undefined): HTMLElement {
  const rest = share === null || share === undefined ? '' : `, ${percent(share)} of it`;
  return h('span', {}, word(bound), rest);
}

function kernelName(name: string, number: number): Child {
  return h(
    'span',
    { class: 'nbx-kernel-name' },
    swatch(number),
    visible(name)
  );
}

function roof(payload: Payload): HTMLElement | null {
  const { machine, kernels: rows = [] } = payload.numbers ?? ({} as Numbers);
  const dots = rows
    .filter(k => k.intensity && k.flops_per_second)
    .map(k => ({ name: k.kernel, x: k.intensity!, y: k.flops_per_second!, number: numberOf(payload, k.kernel) }));
  const roofs = machine ? limits(machine) : [];
  if (!dots.length || !roofs.some(r => r.ceiling) || !roofs.some(r => r.slope)) {
    return null;
  }
  const about = `The limits of ${machine!.name}, measured, and the kernels under them`;
  return figure('Roofline', about, roofline(roofs, dots, value => si(value, 'FLOP/s')));
}

/** The highest ceiling of each type and the steepest slope of each level of memory. */
function limits({ peak_flops = [], bandwidth = [] }: Machine): Roof[] {
  const best = new Map<string, number>();
  const keep = (key: string, value: number | null): void => {
    best.set(key, Math.max(value ?? 0, best.get(key) ?? 0));
  };
  peak_flops.forEach(({ dtype, value }) => keep(`flops ${dtype}`, value));
  bandwidth.forEach(({ level, value }) => keep(`bytes ${level}`, value));
  return [...best].map(([key, value]) => {
    const name = key.slice(6);
    return key.startsWith('flops ')
      ? { words: `${name}: ${si(value, 'FLOP/s')}`, ceiling: value }
      : { words: `${name} ${si(value, 'B/s')}`, slope: value };
  });
}

function ablation({ ablation: rows = [] }: Payload): HTMLElement | null {
  const used = rows.filter(row => row.note !== UNUSED);
  const unused = rows.filter(row => row.note === UNUSED).map(row => row.name);
  const sorted = [...used].sort((a, b) => (b.ratio ?? 0) - (a.ratio ?? 0));
  const made = sorted.map(row => {
    const full = row.seconds && row.ratio ? row.seconds / row.ratio : 0;
    return {
      name: `without ${row.name}`,
      value: row.ratio,
      words: row.ratio ? `${digits(row.ratio)}×${row.seconds ? `  ${seconds(row.seconds)}` : ''}` : row.note || '–',
      low: full && row.low ? row.low / full : null,
      high: full && row.high ? row.high / full : null,
      note: [row.description, row.note].filter(Boolean).join(': ')
    };
  });
  const about = 'Each optimisation off in turn: how many times as long the program takes';
  const rest = unused.length ? h('div', { class: 'nbx-faint' }, visible(`Not used here: ${unused.join(', ')}`)) : null;
  const mark = { value: 1, words: 'with all of them' };
  return rows.length ? figure('What each optimisation is worth', about, bars(made, mark), rest) : null;
}

function instructions({ kernels = [], help = {} }: Payload): HTMLElement | null {
  const withFacts = kernels.filter(k => k.facts?.some(([name]) => name !== LEFT_OUT));
  const without = kernels.filter(k => k.facts?.some(([name]) => name === LEFT_OUT));
  if (!withFacts.length && !without.length) {
    return null;
  }
  const lists = withFacts.map(k =>
    h(
      'div',
      { class: 'nbx-facts' },
      h('div', {}, kernelName(k.name, k.number)),
      h('dl', {}, ...k.facts!.filter(([name]) => name !== LEFT_OUT).flatMap(([name, value]) => [h('dt', {}, visible(name)), h('dd', {}, ...explained(value, help))]))
    )
  );
  const [, why = ''] = without[0]?.facts?.find(([name]) => name === LEFT_OUT) ?? [];
  const rest = why && h('p', { class: 'nbx-faint' }, ...prose(`Machine code of ${count(without.length, 'kernel')}: ${why}`));
  return figure('Instructions', '', h('div', { class: 'nbx-fact-lists' }, ...lists), rest);
}

/** A list of numbers of instructions, with the help of each kind. */
function explained(value: string, help: NonNullable<Payload['help']>): Child[] {
  return value.split(/((?<![`\w-])[a-z]+(?![`\w]))/).flatMap((part): Child[] => {
    const known = Object.prototype.hasOwnProperty.call(help, `kind:${part}`) ? help[`kind:${part}`] : undefined;
    return known ? [h('span', { class: 'nbx-helped', title: visible(known.text) }, part)] : prose(part);
  });
}

function stages({ stages: rows = [] }: Payload): HTMLElement | null {
  const total = rows.reduce((sum, r) => sum + (r.seconds ?? 0), 0);
  const made = rows.map(r => ({
    name: r.name,
    value: r.seconds,
    words: `${seconds(r.seconds)}  ${total && r.seconds ? percent(r.seconds / total) : ''}`
  }));
  return rows.length ? figure('Compile time', `${seconds(total)} in all`, bars(made)) : null;
}

function provenance(payload: Payload): HTMLElement | null {
  const { provenance: rows = [] } = payload;
  const sum = (of: (row: (typeof rows)[number]) => number): number => rows.reduce((n, r) => n + of(r), 0);
  const [mapped, all] = [sum(r => r.mapped), sum(r => r.in_loop)];
  if (!all) {
    return null;
  }
  const made = rows.map(r => ({
    name: r.kernel,
    value: r.in_loop ? r.mapped / r.in_loop : 0,
    words: `${r.mapped} of ${r.in_loop}`,
    number: numberOf(payload, r.kernel)
  }));
  const about = `${percent(mapped / all)} of the ${all} instructions in loops come from a known line or are a named part of the compiler's own`;
  return figure('Provenance', about, bars(made, { value: 1, words: 'all of them' }));
}

// ----------------------------------------------------------------------------- memory

const LANE = 20;

function memory({ numbers }: Payload): HTMLElement | null {
  const data = numbers?.memory;
  if (!data?.buffers.length || !data.steps.length) {
    return null;
  }
  const parts = [data.peak ? `${bytes(data.peak)} at most` : '', data.arena ? `${bytes(data.arena)} of it reused` : ''];
  return figure('Memory over time', parts.filter(Boolean).join(', '), lifetimes(data));
}

/** A lane per buffer, a column per step: when it is in use, and how large it is. */
function lifetimes({ buffers, steps }: Memory): HTMLElement {
  const [left, width] = [150, 560];
  const column = (width - left - 8) / steps.length;
  const height = 26 + LANE * buffers.length;
  const lane = (buffer: Buffer, i: number): SVGElement[] => {
    const y = 24 + i * LANE;
    const x = left + column * buffer.first;
    const span = column * (buffer.last - buffer.first + 1) - 2;
    const kind = buffer.role === 'input' ? 4 : buffer.role === 'output' ? 2 : 0;
    const words = `${buffer.name}: ${bytes(buffer.bytes)}, ${buffer.role ?? ''}`;
    const where = buffer.offset === null || buffer.offset === undefined ? '' : ` at ${bytes(buffer.offset)} of the arena`;
    return [
      s('text', { x: left - 8, y: y + 13, 'text-anchor': 'end' }, visible(clipped(buffer.name, 18))),
      s('rect', { class: `nbx-life ${colour(kind)}`, x, y: y + 2, width: Math.max(2, span), height: LANE - 4, rx: 3 }, s('title', {}, visible(words + where))),
      s('text', { class: 'nbx-small', x: x + 6, y: y + 13 }, visible(`${bytes(buffer.bytes)} ${buffer.role ?? ''}`))
    ];
  };
  const most = Math.max(1, Math.floor(90 / column));
  const heads = steps.map((step, i) => (i % most ? null : head(step, left + column * i, column * most, height)));
  const label = `${buffers.length} buffers over ${steps.length} steps`;
  const picture = s(
    'svg',
    { class: 'nbx-plot', viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': label },
    ...heads,
    ...buffers.flatMap(lane)
  );
  return h('div', { class: 'nbx-lanes' }, picture);
}

function head(step: string, x: number, room: number, height: number): SVGElement {
  return s(
    'g',
    {},
    s('line', { class: 'nbx-grid', x1: x, x2: x, y1: 4, y2: height }),
    s('text', { class: 'nbx-small', x: x + 4, y: 14 }, visible(clipped(step, Math.floor(room / 6.2))), s('title', {}, visible(step)))
  );
}

function clipped(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, Math.max(1, most - 1))}…` : text;
}
