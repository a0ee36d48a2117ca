/**
 * Where else an explorer can be opened: a panel of JupyterLab, or a page of its own. The plugin
 * says once which application this is; without one a page is opened.
 */

import { Widget } from '@lumino/widgets';

import { explore } from './explorer.js';
import { attachStyle } from './style.js';

/** What is needed of a Jupyter application: it is passed to every plugin. */
export interface Application {
  readonly name: string;
  readonly shell: {
    add(widget: Widget, area: string, options?: { mode?: string }): unknown;
    activateById(id: string): void;
  };
}

let application: Application | null = null;
let opened = 0;

export function useApplication(app: Application): void {
  application = app;
}

/** Open the same output in more room. */
export function openElsewhere(data: unknown): void {
  if (application?.name !== 'JupyterLab' || !openPanel(application, data)) {
    openPage(data);
  }
}

function openPanel({ shell }: Application, data: unknown): boolean {
  opened += 1;
  const widget = new Widget();
  widget.id = `nbcomp-explorer-${opened}`;
  widget.title.label = `nbcomp: ${nameOf(data)}`;
  widget.title.closable = true;
  widget.addClass('nbx-roomy');
  explore(widget.node, data);
  try {
    shell.add(widget, 'main', { mode: 'split-right' });
    shell.activateById(widget.id);
    return true;
  } catch (error) {
    console.warn('nbcomp: no panel could be opened', error);
    return false;
  }
}

function openPage(data: unknown): void {
  const page = window.open('', '_blank');
  if (!page) {
    return;
  }
  const theme = document.body.getAttribute('data-jp-theme-light');
  page.document.title = `nbcomp: ${nameOf(data)}`;
  page.document.body.style.margin = '0';
  if (theme) {
    page.document.body.setAttribute('data-jp-theme-light', theme);
    page.document.documentElement.style.colorScheme = theme === 'false' ? 'dark' : 'light';
  }
  const host = page.document.createElement('div');
  host.className = 'nbx-roomy';
  page.document.body.append(host);
  attachStyle(page.document);
  explore(host, data);
}

function nameOf(data: unknown): string {
  const name = (data as { name?: unknown } | null)?.name;
  return typeof name === 'string' ? name.slice(0, 60) : 'compilation';
}
