/**
 * What is chosen, and what belongs to it. There is one selection for all views: a set of places
 * (spans of the user's expressions) and the source lines they are on. A line of any text, a box of
 * a graph and a line of the source all have a `Trace`; what shares a place with the chosen one is
 * the same thing at another level. Knows places and constructs; it must not know any view.
 */

import type { Payload, Place } from './schema.js';

/** Where an item came from: places, source lines (when no place says more), a construct or -1. */
export interface Trace {
  readonly places: readonly number[];
  readonly lines: readonly number[];
  readonly construct: number;
}

/** How an item belongs to what is chosen: not, by its source line, or by the same expression. */
export enum Relation {
  none,
  line,
  same
}

export const NOTHING: Trace = { places: [], lines: [], construct: -1 };

/** The places of a payload, and the lines they cover. */
export class Places {
  readonly all: readonly Place[];
  private readonly onLine = new Map<number, number[]>();

  constructor(payload: Payload) {
    this.all = payload.places ?? [];
    this.all.forEach((_, index) => {
      for (const line of this.lines(index)) {
        this.onLine.set(line, [...(this.onLine.get(line) ?? []), index]);
      }
    });
  }

  /** The source lines a place covers. */
  lines(place: number): number[] {
    const at = this.all[place];
    if (!at || !at.line) {
      return [];
    }
    const last = Math.max(at.end_line ?? 0, at.line);
    return Array.from({ length: last - at.line + 1 }, (_, i) => at.line + i);
  }

  /**
   * The trace of a line of the user's source: the expressions that begin on it, or else the
   * smallest ones that reach over it. A whole loop, say, is at its first line.
   */
  ofLine(line: number): Trace {
    const over = this.onLine.get(line) ?? [];
    const begun = over.filter(place => this.all[place]!.line === line);
    const least = Math.min(...over.map(place => this.lines(place).length));
    const places = begun.length ? begun : over.filter(place => this.lines(place).length === least);
    return { places, lines: [line], construct: -1 };
  }

  /** The trace of something that names places, and maybe a line or a construct. */
  trace(places: number | readonly number[] | undefined, line = 0, construct = -1): Trace {
    const list = (typeof places === 'number' ? [places] : places ?? []).filter(p => p in this.all);
    const lines = list.length ? list.flatMap(p => this.lines(p)) : line ? [line] : [];
    return list.length || lines.length || construct >= 0
      ? { places: list, lines: [...new Set(lines)].sort((a, b) => a - b), construct }
      : NOTHING;
  }
}

export class Selection {
  /** Whether it stays until it is cleared. */
  pinned = false;
  trace: Trace = NOTHING;
  private places = new Set<number>();
  private lines = new Set<number>();
  private readonly listeners: (() => void)[] = [];

  /** Call back after every change. */
  listen(listener: () => void): void {
    this.listeners.push(listener);
  }

  get empty(): boolean {
    return !this.places.size && !this.lines.size && this.trace.construct < 0;
  }

  /** The mouse or the focus is on something: chosen until it leaves, unless another is pinned. */
  hover(trace: Trace): void {
    if (!this.pinned && trace !== this.trace) {
      this.choose(trace);
    }
  }

  /** A click: stays chosen; again on the same thing: let go. */
  pin(trace: Trace): void {
    const again = this.pinned && trace === this.trace;
    this.pinned = !again && trace !== NOTHING;
    this.choose(again ? NOTHING : trace);
  }

  clear(): void {
    this.pinned = false;
    this.choose(NOTHING);
  }

  relation(trace: Trace): Relation {
    if (trace === NOTHING || this.empty) {
      return Relation.none;
    }
    if (trace.places.some(place => this.places.has(place))) {
      return Relation.same;
    }
    if (trace.lines.some(line => this.lines.has(line))) {
      // Without places on one of the sides the line is all that is known.
      return trace.places.length && this.places.size ? Relation.line : Relation.same;
    }
    const shared = trace.construct >= 0 && trace.construct === this.trace.construct;
    return shared && !this.places.size ? Relation.line : Relation.none;
  }

  /** Whether a source line is among the chosen ones. */
  hasLine(line: number): boolean {
    return this.lines.has(line);
  }

  /** Whether a place is among the chosen ones. */
  hasPlace(place: number): boolean {
    return this.places.has(place);
  }

  private choose(trace: Trace): void {
    this.trace = trace;
    this.places = new Set(trace.places);
    this.lines = new Set(trace.lines);
    this.listeners.forEach(listener => listener());
  }
}
