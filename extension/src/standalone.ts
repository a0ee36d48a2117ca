/**
 * The explorer in a page without Jupyter. Each `<script type="application/vnd.nbcomp.compilation+json">`
 * holds a payload; the explorer takes the place of the element that follows it, the static form,
 * which stays where there is no script, where the payload cannot be shown, and on paper.
 */

import { explore } from './explorer.js';
import { MIME, read } from './payload.js';

function start(): void {
  document.querySelectorAll<HTMLScriptElement>(`script[type="${MIME}"]`).forEach(holder => {
    const fallback = holder.nextElementSibling;
    const host = document.createElement('div');
    host.className = 'nbx-page';
    holder.before(host);
    const data = parsed(holder.textContent ?? '');
    explore(host, data);
    if (fallback && read(data).payload) {
      fallback.classList.add('nbx-on-paper');
    }
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

if (document.readyState === 'loading') {
  document.addEventListener('DOMContentLoaded', start);
} else {
  start();
}

export { explore };
