/**
 * A graph as SVG at the places Python gave it: pan by dragging, zoom with Ctrl and the wheel or by
 * keys, arrow keys from box to box, kernels and layers fold. Only what is in sight is drawn, and texts only
 * where they can be read. Knows drawings and the selection.
 */

import { s } from './dom.js';
import { folded, type Folded } from './folding.js';
import { around, Plane } from './plane.js';
import type { Box, Drawing, Frame } from './schema.js';
import { NOTHING, Relation, type Places, type Selection, type Trace } from './selection.js';
import { centre, curve, frameTitle, frozen, label, node, outline, rectangle } from './shapes.js';

export interface GraphOptions {
  readonly drawing: Drawing;
  readonly places: Places;
  readonly selection: Selection;
  readonly help: (key: string) => string;
  readonly attend: (box: Box | null) => void;
}

interface Window {
  x: number;
  y: number;
  scale: number;
}

const READABLE = 0.7; // the scale from which a picture can be read at once
const LEGIBLE = 0.4; // below this scale small texts are left out, and below half of it all
const ARROWS: Record<string, [number, number]> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1]
};

export class Graph {
  readonly node: SVGSVGElement;
  private readonly closed = new Set<number>();
  private readonly traces: Map<Box, Trace>;
  private shown: Folded;
  private planes: Plane[] = [];
  private boxes = new Plane([]);
  private frames = new Plane([]);
  private hits = new Set<number>();
  private currentHit = -1;
  private active = 0;
  private view: Window = { x: 0, y: 0, scale: 1 };
  private placed = false;

  constructor(private readonly options: GraphOptions) {
    const { drawing, places, selection } = options;
    this.traces = new Map(drawing.boxes.map(b => [b, places.trace(b.places, b.line)]));
    this.shown = folded(drawing, this.closed);
    // Colours tell kernels apart; layers have none.
    const layers = drawing.frames?.some(frame => frame.kind === 'layer') ? 'nbx-layers' : '';
    this.node = s('svg', { class: `nbx-graph ${layers}`, role: 'group', 'aria-label': drawing.summary ?? 'graph' });
    this.draw();
    this.node.addEventListener('keydown', event => this.key(event));
    this.node.addEventListener('wheel', event => this.wheel(event), { passive: false });
    this.node.addEventListener('pointerdown', event => this.drag(event));
    this.node.addEventListener('mouseover', event => this.point(event));
    this.node.addEventListener('mouseleave', () => this.leave());
    this.node.addEventListener('focusin', event => this.point(event));
    this.node.addEventListener('focusout', () => this.leave());
    this.node.addEventListener('click', event => this.click(event));
    new ResizeObserver(() => this.resize()).observe(this.node);
    selection.listen(() => this.paint());
  }

  /** Boxes of the selection. */
  related(): number {
    return this.options.drawing.boxes.filter(b => this.relation(b) === Relation.same).length;
  }

  /** The indices of the boxes that hold a lower-case text. */
  find(query: string): number[] {
    const holds = (box: Box): boolean => `${box.title} ${box.detail ?? ''}`.toLowerCase().includes(query);
    return this.options.drawing.boxes.flatMap((box, i) => (holds(box) ? [i] : []));
  }

  /** Mark the boxes found, and bring the current one into sight. */
  mark(found: readonly number[], current: number | null): void {
    this.hits = new Set(found);
    this.currentHit = current ?? -1;
    const box = current === null ? undefined : this.options.drawing.boxes[current];
    if (box && this.closed.delete(box.group ?? -1)) {
      this.draw();
    }
    this.intoSight(this.shown.boxes[this.shown.kept.indexOf(this.currentHit)]);
    this.paint();
  }

  /** Fold or unfold every frame. */
  foldAll(close: boolean): void {
    this.closed.clear();
    if (close) {
      this.options.drawing.frames?.forEach(frame => this.closed.add(frame.group ?? -1));
    }
    this.draw();
    this.begin();
  }

  get folds(): boolean {
    return !!this.options.drawing.frames?.length;
  }

  /** Show all of it. */
  fit(): void {
    const { clientWidth, clientHeight } = this.node;
    const { width, height } = this.shown;
    this.put(Math.min(clientWidth / width, clientHeight / height, 1.2), false);
  }

  /** Show all of it if that can be read, else its top, as large as its width allows and can be read. */
  private begin(): void {
    const { clientWidth, clientHeight } = this.node;
    const { width, height } = this.shown;
    const whole = Math.min(clientWidth / width, clientHeight / height, 1);
    const top = Math.min(Math.max(clientWidth / width, READABLE), 0.9);
    this.put(whole >= READABLE ? whole : top, whole < READABLE);
  }

  /** Look at the middle of the picture, or at the middle of its upper edge. */
  private put(scale: number, top: boolean): void {
    const { clientWidth, clientHeight } = this.node;
    if (clientWidth && clientHeight) {
      const x = (this.shown.width - clientWidth / scale) / 2;
      const y = top ? -8 : (this.shown.height - clientHeight / scale) / 2;
      this.view = { x, y, scale };
      this.placed = true;
      this.look();
    }
  }

  zoom(factor: number, cx = this.node.clientWidth / 2, cy = this.node.clientHeight / 2): void {
    const scale = Math.max(0.05, Math.min(4, this.view.scale * factor));
    const x = this.view.x + cx / this.view.scale - cx / scale;
    const y = this.view.y + cy / this.view.scale - cy / scale;
    this.view = { x, y, scale };
    this.look();
  }

  /** The whole picture as the text of an SVG file, which looks as it does here. */
  text(): string {
    const { width, height } = this.shown;
    this.planes.forEach(plane => plane.show({ x: 0, y: 0, width, height }));
    const picture = frozen(this.node);
    picture.setAttribute('viewBox', `0 0 ${width} ${height}`);
    this.look();
    return new XMLSerializer().serializeToString(picture);
  }

  private resize(): void {
    if (this.node.clientWidth) {
      this.placed ? this.look() : this.begin();
    }
  }

  private look(): void {
    const { x, y, scale } = this.view;
    const { clientWidth, clientHeight } = this.node;
    if (clientWidth && clientHeight) {
      const [width, height] = [clientWidth / scale, clientHeight / scale];
      this.node.setAttribute('viewBox', `${x} ${y} ${width} ${height}`);
      this.node.classList.toggle('nbx-far', scale < LEGIBLE);
      this.node.classList.toggle('nbx-tiny', scale < LEGIBLE / 2);
      // A little more than is in sight, so that panning shows no gaps.
      const sight = { x: x - width / 4, y: y - height / 4, width: 1.5 * width, height: 1.5 * height };
      this.planes.forEach(plane => plane.show(sight));
      this.boxes.element(this.active)?.setAttribute('tabindex', '0');
      this.paint();
    }
  }

  // ------------------------------------------------------------------------------ drawing

  private draw(): void {
    this.shown = folded(this.options.drawing, this.closed);
    const { frames = [], wires = [], boxes, kept } = this.shown;
    const labels = wires.filter(wire => wire.label);
    this.boxes = new Plane(boxes.map((box, i) => ({ at: rectangle(box), make: () => node(box, kept[i]!, this.words(box)) })));
    this.frames = new Plane(frames.map(frame => ({ at: rectangle(frame), make: () => outline(frame) })));
    this.planes = [
      this.frames,
      new Plane(wires.map(wire => ({ at: around(wire.points), make: () => curve(wire) }))),
      new Plane(frames.map(frame => ({ at: rectangle(frame), make: () => this.title(frame) }))),
      new Plane(labels.map(wire => ({ at: around([wire.label_at ?? [0, 0]]), make: () => label(wire) }))),
      this.boxes
    ];
    this.node.replaceChildren(...this.planes.map(plane => plane.node));
    this.active = Math.max(0, Math.min(this.active, boxes.length - 1));
    this.look();
  }

  /** What is said of a box's operator. */
  private words({ title }: Box): string {
    return this.options.help(`op:${title.split(/[(\s]/)[0]}`);
  }

  private title(frame: Frame): SVGGElement {
    const operators = this.options.drawing.boxes.filter(box => !['input', 'constant'].includes(box.kind));
    const inside = operators.filter(box => box.group === frame.group).length;
    return frameTitle(frame, inside, this.closed.has(frame.group ?? -1));
  }

  private relation(box: Box): Relation {
    return this.options.selection.relation(this.traces.get(box) ?? NOTHING);
  }

  private paint(): void {
    const { selection, drawing } = this.options;
    this.node.classList.toggle('nbx-pinned', selection.pinned);
    for (const [i, g] of this.boxes.elements()) {
      const original = this.shown.kept[i]!;
      const relation = this.relation(drawing.boxes[original]!);
      g.classList.toggle('nbx-same', relation === Relation.same);
      g.classList.toggle('nbx-near', relation === Relation.line);
      g.classList.toggle('nbx-hit', this.hits.has(original));
      g.classList.toggle('nbx-now', original === this.currentHit);
      g.setAttribute('aria-pressed', String(relation === Relation.same));
    }
    this.paintFolded();
  }

  /** A folded frame stands for the chosen boxes inside it. */
  private paintFolded(): void {
    const inside = this.options.drawing.boxes.filter(box => this.closed.has(box.group ?? -1));
    const chosen = new Set(inside.filter(b => this.relation(b) === Relation.same).map(b => b.group));
    for (const [i, outlined] of this.frames.elements()) {
      outlined.classList.toggle('nbx-same', chosen.has(this.shown.frames?.[i]?.group));
    }
  }

  // --------------------------------------------------------------------------- attention

  private boxOf(event: Event): Box | null {
    const g = (event.target as Element).closest<SVGGElement>('[data-box]');
    return g ? this.options.drawing.boxes[Number(g.dataset['box'])] ?? null : null;
  }

  private point(event: Event): void {
    const box = this.boxOf(event);
    this.options.selection.hover(box ? this.traces.get(box) ?? NOTHING : NOTHING);
    this.options.attend(box);
  }

  private leave(): void {
    this.options.selection.hover(NOTHING);
    this.options.attend(null);
  }

  private click(event: Event): void {
    const frame = (event.target as Element).closest<SVGGElement>('[data-frame]');
    if (frame) {
      this.toggle(Number(frame.dataset['frame']));
      return;
    }
    const box = this.boxOf(event);
    if (box) {
      this.options.attend(box);
      this.options.selection.pin(this.traces.get(box) ?? NOTHING);
    }
  }

  private toggle(group: number): void {
    this.closed.has(group) ? this.closed.delete(group) : this.closed.add(group);
    this.draw();
    this.node.querySelector<SVGGElement>(`[data-frame="${group}"]`)?.focus({ preventScroll: true });
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    const actions: Record<string, () => void> = {
      '+': () => this.zoom(1.25),
      '-': () => this.zoom(0.8),
      '0': () => this.fit(),
      Enter: () => this.click(event),
      ' ': () => this.click(event)
    };
    const arrow = ARROWS[event.key];
    const act = arrow ? () => this.step(arrow) : actions[event.key];
    if (act) {
      act();
      event.preventDefault();
      event.stopPropagation();
    }
  }

  /** The focus goes to the nearest box in a direction. */
  private step([dx, dy]: [number, number]): void {
    const from = centre(this.shown.boxes[this.active]);
    let best = -1;
    let least = Infinity;
    this.shown.boxes.forEach((box, i) => {
      const [x, y] = centre(box);
      const along = (x - from[0]) * dx + (y - from[1]) * dy;
      const aside = Math.abs((x - from[0]) * dy) + Math.abs((y - from[1]) * dx);
      const distance = along + 2 * aside;
      if (along > 1 && distance < least) {
        [best, least] = [i, distance];
      }
    });
    if (best >= 0) {
      this.focus(best);
    }
  }

  private focus(index: number): void {
    this.boxes.element(this.active)?.setAttribute('tabindex', '-1');
    this.active = index;
    this.intoSight(this.shown.boxes[index]);
    const g = this.boxes.element(index);
    g?.setAttribute('tabindex', '0');
    g?.focus({ preventScroll: true });
  }

  /** Scroll to the boxes of the selection, unless one is in sight. */
  revealRelated(): void {
    const { drawing } = this.options;
    const related = this.shown.boxes.filter(
      (_, i) => this.relation(drawing.boxes[this.shown.kept[i]!]!) === Relation.same
    );
    if (related.length && !related.some(box => this.inSight(box))) {
      this.intoSight(related[0]);
    }
  }

  private inSight(box: Box | undefined): boolean {
    const { x, y, scale } = this.view;
    const [cx, cy] = centre(box);
    const right = x + this.node.clientWidth / scale;
    return cx > x && cx < right && cy > y && cy < y + this.node.clientHeight / scale;
  }

  private intoSight(box: Box | undefined): void {
    if (box && !this.inSight(box)) {
      const [cx, cy] = centre(box);
      this.view.x = cx - this.node.clientWidth / this.view.scale / 2;
      this.view.y = cy - this.node.clientHeight / this.view.scale / 2;
      this.look();
    }
  }

  // ------------------------------------------------------------------------- pan and zoom

  private wheel(event: WheelEvent): void {
    if (event.ctrlKey || event.metaKey) {
      const at = this.node.getBoundingClientRect();
      this.zoom(Math.exp(-event.deltaY / 300), event.clientX - at.left, event.clientY - at.top);
      event.preventDefault();
    }
  }

  private drag(start: PointerEvent): void {
    if (start.button !== 0) {
      return;
    }
    let { clientX, clientY } = start;
    const move = (event: PointerEvent): void => {
      this.view.x -= (event.clientX - clientX) / this.view.scale;
      this.view.y -= (event.clientY - clientY) / this.view.scale;
      ({ clientX, clientY } = event);
      this.node.classList.add('nbx-dragging');
      this.look();
    };
    const end = (): void => {
      this.node.classList.remove('nbx-dragging');
      this.node.removeEventListener('pointermove', move);
    };
    this.node.addEventListener('pointermove', move);
    for (const over of ['pointerup', 'pointerleave', 'pointercancel']) {
      this.node.addEventListener(over, end, { once: true });
    }
  }
}
