/**
 * What all views of one explorer share: the payload, its places, the one selection, the help, and
 * how to say something about what the reader is at. Knows no view.
 */

import type { Kernel, Mark, Payload, Text } from './schema.js';
import { NOTHING, Places, Selection, type Trace } from './selection.js';

/** What the inspector shows: a heading, then sentences, each with a sign of its kind. */
export interface Note {
  readonly heading: string;
  readonly code?: string;
  readonly remarks: readonly Mark[];
  readonly facts: readonly string[];
}

/** Something texts can be searched in; `reveal` shows one occurrence and marks the others. */
export interface Searchable {
  readonly name: string;
  find(query: string): number;
  reveal(index: number | null): void;
}

export class Context {
  readonly places: Places;
  readonly selection = new Selection();
  readonly searchables: Searchable[] = [];
  private readonly marksAt = new Map<number, Mark[]>();

  constructor(
    readonly payload: Payload,
    private readonly tell: (note: Note | null) => void
  ) {
    this.places = new Places(payload);
    for (const mark of payload.source?.marks ?? []) {
      this.marksAt.set(mark.line, [...(this.marksAt.get(mark.line) ?? []), mark]);
    }
  }

  /** The hover help under a key like `asm:vaddps`; empty when there is none. */
  readonly help = (key: string): string => {
    const entry = Object.prototype.hasOwnProperty.call(this.payload.help ?? {}, key)
      ? this.payload.help?.[key]
      : undefined;
    return entry ? `${entry.text}${entry.source ? ` (${entry.source})` : ''}` : '';
  };

  /** Show a note about what the mouse or the focus is on. */
  attend(note: Note | null): void {
    this.tell(note);
  }

  marks(line: number): readonly Mark[] {
    return this.marksAt.get(line) ?? [];
  }

  /** The text of a source line. */
  sourceLine(line: number): string {
    const source = this.payload.source;
    return source?.lines[line - source.first] ?? '';
  }

  /** The expressions a trace stands for, in the user's words. */
  expressions(trace: Trace): string[] {
    return trace.places.map(index => {
      const { line, column = 0, end_line = 0, end_column = 0 } = this.places.all[index]!;
      const text = this.sourceLine(line);
      const whole = end_line > line || !end_column;
      return `line ${line}: ${whole ? text.slice(column).trim() : text.slice(column, end_column)}`;
    });
  }

  /** The lines of a text with their traces and constructs. */
  lines(text: Text): { lines: string[]; traces: Trace[]; notes: string[] } {
    const lines = text.text.split('\n');
    const { constructs = [] } = this.payload;
    const traces = lines.map((_, i) => {
      const construct = text.constructs?.[i] ?? -1;
      const places = text.places?.[i] ?? -1;
      return this.places.trace(places, 0, construct);
    });
    const notes = traces.map(t => (t !== NOTHING && !t.places.length ? constructs[t.construct] ?? '' : ''));
    return { lines, traces, notes };
  }

  /** The kernels, in the order of the program. */
  get kernels(): readonly Kernel[] {
    return this.payload.kernels ?? [];
  }
}
