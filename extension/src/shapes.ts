/**
 * The shapes of a graph: boxes, frames, wires, labels, each one SVG element, and a copy of a whole
 * picture that needs no style sheet. Knows drawings; it must not know the selection.
 */

import { colour } from './colours.js';
import { keepKeys, s, visible } from './dom.js';
import type { Rectangle } from './plane.js';
import type { Box, Frame, Wire } from './schema.js';

// Widths of a character of a title and of the smaller texts, and of the widest label, in pixels.
const [TITLE, SMALL, LABEL] = [7.2, 6.1, 300];

/** A node, with its texts; `words` is what is said of its operator. */
export function node(box: Box, index: number, words: string): SVGGElement {
  const { x = 0, y = 0, width, height, title, detail = '', tip = '', group = -1, kind } = box;
  const middle = x + width / 2;
  const about = [tip || `${title} ${detail}`, words].filter(Boolean).join('\n');
  const rounded = kind === 'op' || kind === 'library' || kind === 'group' ? 4 : 12;
  const g = s(
    'g',
    {
      class: `nbx-box nbx-kind-${kind} ${colour(group)}`,
      role: 'button',
      tabindex: -1,
      'aria-label': visible(about),
      'aria-pressed': 'false',
      'data-box': index
    },
    s('title', {}, visible(about)),
    s('rect', { x, y, width, height, rx: rounded }),
    s('text', { x: middle, y: y + (detail ? 16 : height / 2 + 4), 'text-anchor': 'middle' }, within(title, width, TITLE)),
    detail && s('text', { x: middle, y: y + 30, 'text-anchor': 'middle', class: 'nbx-small' }, within(detail, width, SMALL))
  );
  keepKeys(g);
  return g;
}

/** A frame's title, which folds it. */
export function frameTitle(frame: Frame, inside: number, closed: boolean): SVGGElement {
  const { x = 0, y = 0, title, kind = '', group = -1, width } = frame;
  const patch = Math.min(width - 10, (title.length + kind.length + 5) * 6.4 + 8);
  const g = s(
    'g',
    {
      class: `nbx-frame-title ${colour(group)}`,
      role: 'button',
      tabindex: 0,
      'aria-expanded': String(!closed),
      'aria-label': `${kind === 'layer' ? 'layer' : 'kernel'} ${visible(title)}`,
      'data-frame': group
    },
    s('rect', { x: x + 5, y: y + 3, width: patch, height: 17, rx: 3 }),
    s(
      'text',
      { x: x + 10, y: y + 15 },
      `${closed ? '▸' : '▾'} ${within(title, Math.max(width, 60), SMALL)}`,
      s('tspan', { class: 'nbx-faint' }, ` · ${visible(kind)}`)
    ),
    closed && s('text', { x: x + 22, y: y + 30, class: 'nbx-small' }, `${inside} operators`)
  );
  keepKeys(g);
  return g;
}

export function centre(box: Box | undefined): [number, number] {
  return box ? [(box.x ?? 0) + box.width / 2, (box.y ?? 0) + box.height / 2] : [0, 0];
}

export function outline({ x = 0, y = 0, width, height, group = 0, kind }: Frame): SVGElement {
  const dashed = kind === 'library' ? 'nbx-dashed' : '';
  return s('rect', { class: `nbx-frame ${colour(group)} ${dashed}`, x, y, width, height, rx: 8 });
}

export function label({ label: whole = '', label_at: [x, y] = [0, 0] }: Wire): SVGElement {
  const text = within(whole, LABEL, SMALL);
  const width = text.length * 6.1 + 6;
  return s(
    'g',
    { class: 'nbx-wire-label' },
    s('rect', { x: x - width / 2, y: y - 7, width, height: 13, rx: 3 }),
    s('text', { x, y: y + 3.2, 'text-anchor': 'middle' }, text)
  );
}

/** A curve with vertical tangents through the points, and an arrow head where it meets a box. */
export function curve({ points, arrow = true }: Wire): SVGElement {
  let [x, y] = points[0] ?? [0, 0];
  let path = `M${x} ${y}`;
  for (const [nx, ny] of points.slice(1)) {
    const half = (y + ny) / 2;
    path += Math.abs(nx - x) < 0.05 ? `V${ny}` : `C${x} ${half} ${nx} ${half} ${nx} ${ny}`;
    [x, y] = [nx, ny];
  }
  const head = `M${x - 3.5} ${y - 7}L${x} ${y}L${x + 3.5} ${y - 7}z`;
  const tip = arrow && s('path', { class: 'nbx-arrow', d: head });
  return s('g', {}, s('path', { class: 'nbx-wire', d: path }), tip);
}

/** A text, cut so that it stays inside a width; the whole of it is in the tip. */
function within(text: string, width: number, character: number): string {
  const shown = visible(text);
  const most = Math.max(1, Math.floor(width / character));
  return shown.length > most ? `${shown.slice(0, most - 1)}…` : shown;
}

export function rectangle({ x = 0, y = 0, width, height }: Box | Frame): Rectangle {
  return { x, y, width, height };
}

const LOOKS = [
  'fill', 'stroke', 'stroke-width', 'stroke-dasharray', 'opacity', 'font-family', 'font-size', 'font-weight'
];

/** A copy of a picture whose looks are attributes, so that it needs no style sheet. */
export function frozen(picture: SVGSVGElement): SVGSVGElement {
  const copy = picture.cloneNode(true) as SVGSVGElement;
  const from = picture.querySelectorAll('*');
  copy.querySelectorAll('*').forEach((element, i) => {
    const looks = getComputedStyle(from[i]!);
    LOOKS.forEach(name => element.setAttribute(name, looks.getPropertyValue(name)));
    ['class', 'tabindex', 'role'].forEach(name => element.removeAttribute(name));
  });
  return copy;
}
