/**
 * One source, many CPUs: the whole program for each, timed where this machine can run it, and the
 * same kernel for two of them side by side. Knows the `cpus` of a payload and of its kernels.
 */

import { figure, table } from './charts.js';
import type { Context } from './context.js';
import { h, keepKeys, visible } from './dom.js';
import { copyButton, tools } from './files.js';
import { digits, seconds } from './format.js';
import { lineNote } from './levels.js';
import type { Section } from './line.js';
import { Listing } from './listing.js';
import type { Cpu, CpuRow, Kernel } from './schema.js';
import type { View } from './views.js';

/** Two processors beside each other. */
export const CPUS: View = {
  name: 'cpus',
  title: 'CPUs',
  sections: [],
  has: payload => !!payload.cpus?.length || !!payload.kernels?.some(kernel => kernel.cpus?.length),
  make: context => new Cpus(context).node
};

class Cpus {
  readonly node = h('div', {});
  private readonly kernels: readonly Kernel[];
  private readonly body = h('div', {});

  constructor(private readonly context: Context) {
    this.kernels = context.kernels.filter(k => k.cpus?.length);
    const names = this.kernels.map(k => k.name);
    const chooser = select('Kernel', names, 0, index => this.choose(index));
    this.node.append(...programs(context.payload.cpus));
    this.node.append(h('div', { class: 'nbx-bar' }, names.length > 1 ? chooser : h('h3', { class: 'nbx-title' }, visible(names[0] ?? ''))), this.body);
    this.choose(0);
  }

  private choose(index: number): void {
    const kernel = this.kernels[index];
    const cpus = kernel?.cpus ?? [];
    if (!kernel) {
      return;
    }
    const two = h('div', { class: 'nbx-two' }, this.side(cpus, 0), this.side(cpus, Math.min(cpus.length - 1, 1)));
    this.body.replaceChildren(two);
  }

  private side(cpus: readonly Cpu[], start: number): HTMLElement {
    const pane = h('div', { class: 'nbx-pane' });
    const show = (index: number): void => {
      const cpu = cpus[index];
      if (!cpu) {
        return;
      }
      const { lines, traces, notes } = this.context.lines(cpu.text);
      const { notation } = cpu.text;
      const section: Section = { title: '', number: -1, language: 'asm', notation, lines, traces, notes };
      const listing = new Listing({
        label: `assembly for ${cpu.name}`,
        sections: [section],
        selection: this.context.selection,
        help: this.context.help,
        attend: spot => this.context.attend(spot && lineNote(this.context, cpu.name, [section], spot))
      });
      const bar = h('div', { class: 'nbx-bar' }, select('CPU', cpus.map(c => c.name), index, show));
      const facts = [cpu.note ?? '', `${lines.length} lines`];
      bar.append(h('span', { class: 'nbx-faint nbx-cut', title: visible(cpu.note ?? '') }, visible(facts.filter(Boolean).join(' · '))));
      bar.append(tools(copyButton('the assembly', () => listing.text())));
      pane.replaceChildren(bar, listing.node);
    };
    show(start);
    return pane;
  }
}

/** The whole program on every processor: the time where it runs here, vectors and instructions. */
function programs(rows: readonly CpuRow[] = []): HTMLElement[] {
  const own = rows[0]?.seconds;
  const width = ({ vector_bits: bits = 0 }: CpuRow): string => (bits < 0 ? 'scalable' : bits ? `${bits} bits` : 'none');
  const cells = rows.map(row => [
    visible(row.name),
    row.seconds ? seconds(row.seconds) : 'not run here',
    row.seconds && own ? `${digits(row.seconds / own)}×` : '',
    width(row),
    row.in_loops ? row.in_loops.toLocaleString('en') : ''
  ]);
  const notes = rows.filter(row => row.note).map(row => h('li', {}, h('b', {}, visible(row.name)), visible(`: ${row.note}`)));
  const list = h('ul', { class: 'nbx-changes nbx-faint' }, ...notes);
  const head = ['CPU', 'time', "of this machine's", 'vectors', 'instructions in loops'];
  const about = 'The whole program, compiled for each; timed where this machine can run it';
  return rows.length ? [figure('One source, many CPUs', about, table(head, cells, [1, 2, 3, 4]), notes.length ? list : null)] : [];
}

function select(label: string, names: readonly string[], index: number, act: (index: number) => void): HTMLSelectElement {
  const made = h('select', { class: 'nbx-select', 'aria-label': label });
  made.append(...names.map((name, i) => h('option', { value: i }, visible(name))));
  made.selectedIndex = index;
  keepKeys(made);
  made.addEventListener('change', () => act(made.selectedIndex));
  return made;
}
