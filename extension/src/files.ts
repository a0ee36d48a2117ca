/** Copying to the clipboard and saving as a file. Knows nothing of what is copied. */

import { button, h, type Child } from './dom.js';

/** A button that copies a text and says so. */
export function copyButton(what: string, text: () => string): HTMLButtonElement {
  const made = button('Copy', `Copy ${what}`, () => {
    copy(text()).then(
      () => say(made, 'Copied'),
      () => say(made, 'Not allowed')
    );
  });
  return made;
}

/** A button that saves a text as a file. */
export function saveButton(what: string, name: string, text: () => string): HTMLButtonElement {
  return button('Save', `Save ${what} as ${name}`, () => save(name, text()));
}

export function tools(...children: Child[]): HTMLElement {
  return h('div', { class: 'nbx-tools' }, ...children);
}

async function copy(text: string): Promise<void> {
  if (navigator.clipboard) {
    return navigator.clipboard.writeText(text);
  }
  // Pages that are not served over https have no clipboard but this one.
  const area = h('textarea', { class: 'nbx-offscreen', 'aria-hidden': true });
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand('copy');
  area.remove();
  if (!done) {
    throw new Error('copying was refused');
  }
}

function say(made: HTMLButtonElement, words: string): void {
  const before = made.textContent;
  made.textContent = words;
  setTimeout(() => (made.textContent = before), 1200);
}

function save(name: string, text: string): void {
  const address = URL.createObjectURL(new Blob([text], { type: 'text/plain;charset=utf-8' }));
  const link = document.createElement('a');
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
