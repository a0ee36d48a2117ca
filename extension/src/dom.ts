/**
 * Making elements. Everything a payload holds becomes a text node or an attribute from a fixed
 * list, never markup, so nothing in it can run. Knows nothing of what is shown.
 */

const SVG = 'http://www.w3.org/2000/svg';

/** What an element may be given: attributes, `data-*`, `aria-*`, and style properties by name. */
export type Attributes = Record<string, string | number | boolean | undefined>;
export type Child = Node | string | null | undefined | false;

const FORBIDDEN = /^(on|src|href|style$|srcdoc|action|formaction)/i;

function fill<E extends Element>(element: E, attributes: Attributes, children: Child[]): E {
  for (const [name, value] of Object.entries(attributes)) {
    if (FORBIDDEN.test(name)) {
      throw new Error(`attribute ${name} is not allowed`);
    }
    if (value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? '' : String(value));
    }
  }
  element.append(...children.filter((child): child is Node | string => !!child));
  return element;
}

/** An HTML element. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  return fill(document.createElement(tag), attributes, children);
}

/** An SVG element. */
export function s<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): SVGElementTagNameMap[K] {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** A button that does something; `label` is what a screen reader says, if the text does not. */
export function button(text: string, label: string, act: () => void, kind = ''): HTMLButtonElement {
  const made = h('button', { type: 'button', class: `nbx-button ${kind}`.trim(), title: label }, text);
  made.setAttribute('aria-label', label);
  keepKeys(made);
  made.addEventListener('click', act);
  return made;
}

/** Notebook and JupyterLab take arrow keys before the page does, except from such elements. */
export function keepKeys(element: Element): void {
  element.setAttribute('data-lm-suppress-shortcuts', 'true');
}

/** A name for `aria-controls` and the like, unique in the page. */
export function uniqueId(stem: string): string {
  counter += 1;
  return `nbx-${stem}-${counter}`;
}

let counter = 0;

/** A sentence in which `code` between backticks is set as code. */
export function prose(text: string): Child[] {
  return text
    .split(/`([^`]+)`/)
    .map((part, i) => (i % 2 ? h('code', {}, visible(part)) : visible(part)));
}

/* Characters that turn text around, have no width, or control a terminal: shown, not obeyed. */
const TRICKS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** The text with invisible and direction-changing characters written as ⟨U+202E⟩. */
export function visible(text: string): string {
  return text.replace(
    TRICKS,
    c => `⟨U+${c.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}⟩`
  );
}
