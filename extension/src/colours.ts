/**
 * How kernels are told apart: each has a number, written on a patch of its colour, the same in every
 * view. Knows the kernels of a payload by their names.
 */

import { h } from './dom.js';
import type { Payload } from './schema.js';

const COLOURS = 7; // style.ts has as many

/** The number of the kernel of that name; -1: it is none of the kernels. */
export function numberOf({ kernels = [] }: Payload, name: string): number {
  return kernels.find(kernel => kernel.name === name)?.number ?? -1;
}

/** The class that gives an element a kernel's colour; none for no kernel. */
export function colour(number: number): string {
  return number < 0 ? '' : `nbx-group-${number % COLOURS}`;
}

/** A kernel's number, as it is written on things; empty for no kernel. */
export function numeral(number: number): string {
  return number < 0 ? '' : String(number + 1);
}

/** The patch beside a kernel's name; nothing for no kernel. */
export function swatch(number: number): HTMLElement | null {
  return number < 0 ? null : h('span', { class: `nbx-swatch ${colour(number)}`, 'aria-hidden': true }, numeral(number));
}
