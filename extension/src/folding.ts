/**
 * Folding kernels and layers of a drawing: the heights that only folded frames take up are squeezed, and
 * everything else keeps its place relative to the rest. A map of one axis is all it takes, so the
 * layout stays the one Python made. Knows drawings; it must not know elements.
 */

import type { Box, Drawing, Frame, Wire } from './schema.js';

export const FOLDED = 40; // height of a folded frame, in pixels

interface Interval {
  readonly from: number;
  readonly to: number;
}

/** A drawing with folded frames, and which of the original boxes it still has, in order. */
export interface Folded extends Drawing {
  readonly kept: readonly number[];
}

/** The drawing with some frames folded: their boxes and inner wires are gone. */
export function folded(drawing: Drawing, groups: ReadonlySet<number>): Folded {
  const frames = drawing.frames ?? [];
  const closed = frames.filter(frame => groups.has(frame.group ?? -1));
  const hidden = new Set(closed.map(frame => frame.group));
  const kept = drawing.boxes.flatMap((box, i) => (hidden.has(box.group) ? [] : [i]));
  const boxes = kept.map(i => drawing.boxes[i]!);
  const open = frames.filter(frame => !closed.includes(frame));
  const squeeze = squeezed(closed.map(extent), [...boxes, ...open].map(extent));
  const wires = (drawing.wires ?? []).filter(wire => !closed.some(frame => within(wire, frame)));
  return {
    ...drawing,
    kept,
    height: squeeze(drawing.height),
    boxes: boxes.map(box => moved(box, squeeze)),
    frames: frames.map(frame => moved(frame, squeeze)),
    wires: wires.map(wire => bent(wire, squeeze))
  };
}

function extent(item: Box | Frame): Interval {
  const from = item.y ?? 0;
  return { from, to: from + item.height };
}

function within(wire: Wire, frame: Frame): boolean {
  const x = frame.x ?? 0;
  const y = frame.y ?? 0;
  const slack = 1;
  return wire.points.every(
    ([px, py]) =>
      px >= x - slack && px <= x + frame.width + slack && py >= y - slack && py <= y + frame.height + slack
  );
}

function moved<T extends Box | Frame>(item: T, squeeze: (y: number) => number): T {
  const { from, to } = extent(item);
  return { ...item, y: squeeze(from), height: squeeze(to) - squeeze(from) };
}

function bent(wire: Wire, squeeze: (y: number) => number): Wire {
  const points = wire.points.map(([x, y]): [number, number] => [x, squeeze(y)]);
  const [x, y] = wire.label_at ?? [0, 0];
  return { ...wire, points, label_at: [x, squeeze(y)] };
}

/** A rising map that shortens what lies in `closed` and not in `kept` to at most `FOLDED`. */
export function squeezed(
  closed: readonly Interval[],
  kept: readonly Interval[]
): (y: number) => number {
  const free = minus(union(closed), union(kept));
  return y => {
    let result = y;
    for (const { from, to } of free) {
      const length = to - from;
      const lost = Math.max(0, length - FOLDED);
      result -= lost * Math.max(0, Math.min(1, (y - from) / length));
    }
    return result;
  };
}

function union(intervals: readonly Interval[]): Interval[] {
  const merged: Interval[] = [];
  for (const next of [...intervals].sort((a, b) => a.from - b.from)) {
    const last = merged[merged.length - 1];
    if (last && next.from <= last.to) {
      merged[merged.length - 1] = { from: last.from, to: Math.max(last.to, next.to) };
    } else {
      merged.push(next);
    }
  }
  return merged;
}

function minus(intervals: readonly Interval[], holes: readonly Interval[]): Interval[] {
  return intervals.flatMap(interval => {
    const left: Interval[] = [];
    let from = interval.from;
    for (const hole of holes) {
      if (hole.to <= from || hole.from >= interval.to) {
        continue;
      }
      if (hole.from > from) {
        left.push({ from, to: hole.from });
      }
      from = hole.to;
    }
    return from < interval.to ? [...left, { from, to: interval.to }] : left;
  });
}
