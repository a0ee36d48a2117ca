/**
 * One source, many CPUs: the same kernel for two processors side by side, each timed where this
 * machine can run it. Knows the `cpus` of kernels.
 */

import { bars, figure } from './charts.js';
import type { Context } from './context.js';
import { h, keepKeys, visible } from './dom.js';
import { copyButton, tools } from './files.js';
import { seconds } from './format.js';
import { lineNote } from './levels.js';
import type { Section } from './line.js';
import { Listing } from './listing.js';
import type { Cpu, Kernel } from './schema.js';
import type { View } from './views.js';

/** Two processors beside each other. */
export const CPUS: View = {
  name: 'cpus',
  title: 'CPUs',
  sections: [],
  has: payload => !!payload.kernels?.some(kernel => kernel.cpus?.length),
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
    this.node.append(h('div', { class: 'nbx-bar' }, names.length > 1 ? chooser : h('h3', { class: 'nbx-title' }, visible(names[0] ?? ''))), this.body);
    this.choose(0);
  }

  private choose(index: number): void {
    const kernel = this.kernels[index];
    const cpus = kernel?.cpus ?? [];
    if (!kernel) {
      return;
    }
    const timed = cpus.filter(cpu => cpu.seconds);
    const rows = timed.map(cpu => ({ name: cpu.name, value: cpu.seconds ?? null, words: seconds(cpu.seconds), note: cpu.note }));
    const times = figure('Time on this machine', '', bars(rows));
    const two = h('div', { class: 'nbx-two' }, this.side(cpus, 0), this.side(cpus, Math.min(cpus.length - 1, Math.max(1, timed.length - 1))));
    this.body.replaceChildren(...(rows.length ? [times] : []), two);
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
      const facts = [cpu.seconds ? seconds(cpu.seconds) : '', cpu.note ?? '', `${lines.length} lines`];
      bar.append(h('span', { class: 'nbx-faint nbx-cut', title: visible(cpu.note ?? '') }, visible(facts.filter(Boolean).join(' · '))));
      bar.append(tools(copyButton('the assembly', () => listing.text())));
      pane.replaceChildren(bar, listing.node);
    };
    show(start);
    return pane;
  }
}

function select(label: string, names: readonly string[], index: number, act: (index: number) => void): HTMLSelectElement {
  const made = h('select', { class: 'nbx-select', 'aria-label': label });
  made.append(...names.map((name, i) => h('option', { value: i }, visible(name))));
  made.selectedIndex = index;
  keepKeys(made);
  made.addEventListener('change', () => act(made.selectedIndex));
  return made;
}
