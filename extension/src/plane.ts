/**
 * Things on a plane, of which only those in sight are elements: a graph of thousands of boxes costs
 * what the few in the window cost. Knows rectangles; it must not know what is in them.
 */

import { s } from './dom.js';

export interface Rectangle {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** Where something is, and how its element is made when it first comes into sight. */
export interface Item {
  readonly at: Rectangle;
  readonly make: () => SVGElement;
}

/** One layer of a picture. */
export class Plane {
  readonly node = s('g');
  private readonly made = new Map<number, SVGElement>();
  private readonly shown = new Set<number>();

  constructor(private readonly items: readonly Item[]) {}

  /** Have elements for what is in sight, and for nothing else. */
  show(sight: Rectangle): void {
    this.items.forEach(({ at }, i) => {
      if (meet(at, sight)) {
        this.element(i);
      } else if (this.shown.delete(i)) {
        this.made.get(i)?.remove();
      }
    });
  }

  /** The element of an item, in sight or not. */
  element(index: number): SVGElement | undefined {
    const item = this.items[index];
    if (item && !this.shown.has(index)) {
      const element = this.made.get(index) ?? item.make();
      this.made.set(index, element);
      this.shown.add(index);
      this.node.append(element);
    }
    return this.made.get(index);
  }

  /** The elements there are, with the indices of their items. */
  *elements(): Iterable<[number, SVGElement]> {
    for (const index of this.shown) {
      yield [index, this.made.get(index)!];
    }
  }
}

export function meet(a: Rectangle, b: Rectangle): boolean {
  return a.x <= b.x + b.width && b.x <= a.x + a.width && a.y <= b.y + b.height && b.y <= a.y + a.height;
}

/** The rectangle around points. */
export function around(points: readonly (readonly [number, number])[]): Rectangle {
  const xs = points.map(([x]) => x);
  const ys = points.map(([, y]) => y);
  const [x, y] = [Math.min(...xs), Math.min(...ys)];
  return { x, y, width: Math.max(...xs) - x, height: Math.max(...ys) - y };
}
