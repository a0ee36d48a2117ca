/**
 * How the explorer looks: one style sheet, put once into each document. Colours are JupyterLab's
 * variables where there are any; the rest follows its theme, or else the reader's system. What a
 * colour says is always said a second time: by a border, an underline, a sign or a word.
 *
 * The colours of marks are Okabe and Ito's, "Color universal design" (2008). Those of kernels are as
 * far from each other as seven colours that show on their ground can be, also for those who see two
 * kinds of light only; tests/display/test_colours.py has the figures.
 */

const LIGHT = `
  --nbx-ink0: #1f2328; --nbx-faint0: #525b66; --nbx-ground0: #ffffff; --nbx-sheet0: #f6f7f9;
  --nbx-rule0: #d8dce1; --nbx-brand0: #0072b2;
  --nbx-mark: #0072b2; --nbx-good: #00664b; --nbx-bad: #9e4300; --nbx-found: #b8860b;
  --nbx-keyword: #7a1fa2; --nbx-type: #00695c; --nbx-value: #30507a; --nbx-literal: #8a4b00;
  --nbx-g0: #0780ff; --nbx-g1: #923107; --nbx-g2: #004332; --nbx-g3: #7d00a6; --nbx-g4: #be8202;
  --nbx-g5: #50386c; --nbx-g6: #8e8e8e;`;
const DARK = `
  --nbx-ink0: #e4e7eb; --nbx-faint0: #a3abb5; --nbx-ground0: #16181c; --nbx-sheet0: #1f2227;
  --nbx-rule0: #3a3f47; --nbx-brand0: #56b4e9;
  --nbx-mark: #56b4e9; --nbx-good: #3ccb9f; --nbx-bad: #ff9a57; --nbx-found: #e6b84a;
  --nbx-keyword: #d7a3f0; --nbx-type: #6fd3c3; --nbx-value: #a8c4ea; --nbx-literal: #f0b878;
  --nbx-g0: #5688ef; --nbx-g1: #ffca91; --nbx-g2: #587c4c; --nbx-g3: #8c6191; --nbx-g4: #ed8226;
  --nbx-g5: #33d2ff; --nbx-g6: #aeaeae;`;
const GROUPS = [0, 1, 2, 3, 4, 5, 6].map(i => `.nbx .nbx-group-${i} { --nbx-g: var(--nbx-g${i}); }`);

export const STYLE = `
.nbx { ${LIGHT} }
body[data-jp-theme-light='false'] .nbx { ${DARK} }
@media (prefers-color-scheme: dark) { body:not([data-jp-theme-light]) .nbx { ${DARK} } }
${GROUPS.join('\n')}
.nbx .nbx-layers * { --nbx-g: var(--nbx-faint); }

.nbx {
  --nbx-ink: var(--jp-content-font-color1, var(--nbx-ink0));
  --nbx-faint: var(--nbx-faint0);
  --nbx-ground: var(--jp-layout-color0, var(--nbx-ground0));
  --nbx-sheet: var(--jp-layout-color1, var(--nbx-sheet0));
  --nbx-rule: var(--jp-border-color2, var(--nbx-rule0));
  --nbx-brand: var(--jp-brand-color1, var(--nbx-brand0));
  --nbx-mono: var(--jp-code-font-family, ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace);
  --nbx-same: color-mix(in srgb, var(--nbx-mark) 16%, transparent);
  --nbx-near: color-mix(in srgb, var(--nbx-mark) 7%, transparent);
  --nbx-height: 440px;
  container-type: inline-size;
  box-sizing: border-box;
  color: var(--nbx-ink);
  font: 13px/1.45 var(--jp-content-font-family, system-ui, -apple-system, 'Segoe UI', sans-serif);
  padding: 4px 2px 8px;
  text-align: left;
}
.nbx *, .nbx *::before { box-sizing: border-box; }
.nbx [hidden], .nbx .nbx-hidden { display: none !important; }
.nbx code { font-family: var(--nbx-mono); font-size: 12px; background: none; color: inherit; padding: 0; }
.nbx-faint { color: var(--nbx-faint); }
.nbx-offscreen { position: fixed; left: -9999px; }

/* the headline and what needs to be noticed */
.nbx-headline { border-left: 4px solid var(--nbx-faint); padding: 1px 0 1px 12px; margin: 2px 0 12px; }
.nbx-headline h2 { font-size: 15px; font-weight: 600; margin: 0 0 2px; line-height: 1.4; color: inherit; }
.nbx-headline ul { list-style: none; margin: 0; padding: 0; color: var(--nbx-faint); }
.nbx-headline li { display: inline; margin: 0; }
.nbx-headline li + li::before { content: '  ·  '; white-space: pre; }
.nbx-status-faster { border-color: var(--nbx-good); }
.nbx-status-slower { border-color: var(--nbx-bad); border-left-style: double; }
.nbx-status-wrong { border-color: #cf222e; border-left-style: dashed; }
.nbx-notice { border: 1px solid var(--nbx-found); border-left-width: 4px; border-radius: 4px; padding: 6px 10px; margin: 0 0 10px; background: color-mix(in srgb, var(--nbx-found) 10%, transparent); }
.nbx .nbx-plain { font: 12px/1.45 var(--nbx-mono); margin: 0; padding: 0; overflow-x: auto; white-space: pre; background: none; color: inherit; }

/* bars, buttons, tabs */
.nbx-bar { display: flex; flex-wrap: wrap; align-items: center; gap: 4px 12px; min-height: 30px; }
.nbx-top { border-bottom: 1px solid var(--nbx-rule); margin-bottom: 10px; align-items: flex-end; }
.nbx-tools { display: flex; flex-wrap: wrap; align-items: center; gap: 2px; margin-left: auto; padding-bottom: 2px; }
.nbx .nbx-title { font-size: 12px; font-weight: 600; margin: 0; padding: 0; color: var(--nbx-ink); line-height: 1.4; }
.nbx-button, .nbx-tab { font: inherit; font-size: 12px; line-height: 18px; color: var(--nbx-faint); background: none; border: 1px solid transparent; border-radius: 4px; padding: 2px 7px; margin: 0; cursor: pointer; white-space: nowrap; }
.nbx-button:hover, .nbx-tab:hover { color: var(--nbx-ink); background: color-mix(in srgb, var(--nbx-ink) 8%, transparent); }
.nbx-button[aria-pressed='true'] { color: var(--nbx-ink); border-color: var(--nbx-rule); background: var(--nbx-ground); font-weight: 600; }
.nbx-icon { min-width: 26px; text-align: center; }
.nbx-choice { display: flex; gap: 2px; }
.nbx-tabs { display: flex; flex-wrap: wrap; gap: 2px; }
.nbx-tab { border-radius: 4px 4px 0 0; border: 0; border-bottom: 2px solid transparent; padding: 4px 10px 3px; }
.nbx-tab[aria-selected='true'] { color: var(--nbx-ink); border-bottom-color: var(--nbx-brand); font-weight: 600; }
.nbx-views .nbx-tab { font-size: 13px; padding: 4px 12px 5px; margin-bottom: -1px; }
.nbx-badge:not(:empty) { display: inline-block; min-width: 18px; margin-left: 6px; padding: 0 5px; border-radius: 8px; font-size: 10px; line-height: 15px; font-weight: 600; text-align: center; color: var(--nbx-ink); background: var(--nbx-same); }
.nbx :focus-visible { outline: 2px solid var(--nbx-brand); outline-offset: -2px; }
.nbx-searchbar { position: relative; display: flex; align-items: center; gap: 2px; }
.nbx .nbx-search { font: inherit; font-size: 12px; width: 210px; height: 24px; padding: 2px 78px 2px 8px; margin: 0; color: var(--nbx-ink); background: var(--nbx-ground); border: 1px solid var(--nbx-rule); border-radius: 4px; }
.nbx-search::placeholder { color: var(--nbx-faint); opacity: 1; }
.nbx-search::-webkit-search-cancel-button { display: none; }
.nbx-count { position: absolute; right: 64px; color: var(--nbx-faint); font-size: 11px; font-variant-numeric: tabular-nums; pointer-events: none; }

/* the levels */
.nbx-workbench { display: grid; grid-template-columns: minmax(0, 2fr) minmax(0, 3fr); gap: 14px; }
.nbx-workbench > :only-child, .nbx-sourceless > * { grid-column: 1 / -1; }
.nbx-source, .nbx-pane { display: flex; flex-direction: column; min-width: 0; }
.nbx-pane > .nbx-graph, .nbx-pane > .nbx-code { height: var(--nbx-height); }
.nbx-source { height: calc(var(--nbx-height) + 64px); }
.nbx-source > .nbx-code { flex: 0 1 auto; min-height: 60px; }
.nbx-levels { min-width: 0; }
.nbx-panels { position: relative; }
.nbx-away { position: absolute; left: 0; right: 0; top: 0; content-visibility: hidden; pointer-events: none; }
.nbx-levels > .nbx-bar { flex-wrap: nowrap; }
.nbx-column-title { display: none; }
.nbx-side-by-side { display: flex; overflow-x: auto; align-items: stretch; gap: 12px; }
.nbx-side-by-side > .nbx-source { flex: 1 0 320px; }
.nbx-side-by-side > .nbx-levels { flex: 4 0 1240px; }
.nbx-side-by-side > .nbx-levels > .nbx-bar { display: none; }
.nbx-side-by-side .nbx-pane { height: calc(var(--nbx-height) + 64px); }
.nbx-side-by-side .nbx-pane > .nbx-code, .nbx-side-by-side .nbx-pane > .nbx-graph { flex: 1 1 0; height: auto; min-height: 0; }
.nbx-side-by-side .nbx-column-title { display: block; }
.nbx-all { display: flex; gap: 12px; }
.nbx-all > .nbx-panel { flex: 1 1 0; width: 0; min-width: 300px; }
@container (max-width: 720px) {
  .nbx-workbench:not(.nbx-side-by-side) { grid-template-columns: minmax(0, 1fr); }
  .nbx-source { height: auto; }
  .nbx-source > .nbx-code { max-height: 220px; }
  .nbx-inspector { flex: none; height: 84px; }
}

/* lines of code */
.nbx-code { position: relative; display: flex; flex-direction: column; overflow: hidden; background: var(--nbx-sheet); border: 1px solid var(--nbx-rule); border-radius: 6px; tab-size: 8; }
.nbx-lines { flex: 1 1 auto; min-height: 0; position: relative; overflow: auto; padding: 4px 0; }
.nbx-spacer { position: relative; font: 12px/18px var(--nbx-mono); }
.nbx-line, .nbx-head { position: absolute; left: 0; right: 0; height: 18px; display: flex; white-space: pre; border-left: 3px solid transparent; contain: layout style; cursor: default; }
.nbx .nbx-text { font: inherit; flex: 1 0 auto; padding: 0 12px 0 8px; cursor: text; }
.nbx-head { gap: 7px; padding: 0 8px 0 5px; font-family: var(--jp-content-font-family, system-ui, sans-serif); cursor: pointer; background: color-mix(in srgb, var(--nbx-ink) 5%, transparent); }
.nbx-head > .nbx-faint { overflow: hidden; text-overflow: ellipsis; }
.nbx-twist { width: 10px; color: var(--nbx-faint); }
.nbx .nbx-overview { list-style: none; margin: 8px 0 0; padding: 0; }
.nbx-overview li { display: flex; gap: 8px; margin: 0 0 4px; align-items: baseline; }
.nbx-swatch { align-self: center; min-width: 15px; height: 14px; padding: 0 3px; border-radius: 3px; border: 1.5px solid var(--nbx-g); background: color-mix(in srgb, var(--nbx-g) 18%, transparent); font-size: 10px; line-height: 11px; text-align: center; font-weight: 600; }
.nbx-number { flex: none; width: 34px; padding-right: 4px; text-align: right; color: var(--nbx-faint); font-size: 11px; user-select: none; font-variant-numeric: tabular-nums; }
.nbx-origin { width: 48px; }
.nbx-heat { flex: none; width: 48px; margin-left: 4px; padding-right: 5px; position: relative; text-align: right; font-size: 10.5px; user-select: none; color: var(--nbx-ink); }
.nbx-heat::before { content: ''; position: absolute; left: 0; top: 2px; bottom: 2px; width: var(--nbx-share, 0%); background: color-mix(in srgb, var(--nbx-g1) 30%, transparent); border-left: 2px solid var(--nbx-g1); border-radius: 1px 2px 2px 1px; }
.nbx-heat:empty::before { display: none; }
.nbx-sign { flex: none; width: 20px; text-align: center; font-weight: 700; user-select: none; font-family: system-ui, sans-serif; }
.nbx-applied { color: var(--nbx-good); }
.nbx-missed { color: var(--nbx-bad); }
.nbx-analysis { color: var(--nbx-mark); font-style: italic; font-family: Georgia, serif; }
.nbx-note { position: sticky; right: 0; flex: none; padding: 0 10px 0 14px; color: var(--nbx-faint); font-style: italic; background: linear-gradient(90deg, transparent, var(--nbx-sheet) 12px); user-select: none; }
.nbx-lines:focus-visible .nbx-active { box-shadow: inset 0 0 0 1px var(--nbx-brand); }
.nbx-line.nbx-near { background: var(--nbx-near); border-left: 3px dotted var(--nbx-mark); }
.nbx-line.nbx-same { background: var(--nbx-same); border-left: 3px solid var(--nbx-mark); }
.nbx-span { text-decoration: underline solid 2px var(--nbx-mark); text-underline-offset: 3px; }
.nbx-code .nbx-hit { background: color-mix(in srgb, var(--nbx-found) 35%, transparent); border-radius: 2px; }
.nbx-code .nbx-hit.nbx-now { background: var(--nbx-found); color: var(--nbx-ground0); outline: 1px solid var(--nbx-ink); }
.nbx-helped { text-decoration: underline dotted 1px color-mix(in srgb, var(--nbx-faint) 55%, transparent); text-underline-offset: 3px; }
.nbx-ruler { position: absolute; top: 0; right: 0; width: 6px; height: 100%; pointer-events: none; opacity: 0.8; }
.nbx-t-c { color: var(--nbx-faint); font-style: italic; }
.nbx-t-k { color: var(--nbx-keyword); font-weight: 600; }
.nbx-t-t { color: var(--nbx-type); }
.nbx-t-v { color: var(--nbx-value); }
.nbx-t-n, .nbx-t-s { color: var(--nbx-literal); }
.nbx-t-l { color: var(--nbx-keyword); }
.nbx-t-d { color: var(--nbx-faint); }
.nbx-t-f { color: inherit; }
.nbx-added { color: var(--nbx-good); background: color-mix(in srgb, var(--nbx-good) 11%, transparent); }
.nbx-removed { color: var(--nbx-bad); background: color-mix(in srgb, var(--nbx-bad) 11%, transparent); }

/* the graph */
.nbx-graph { display: block; width: 100%; background: var(--nbx-sheet); border: 1px solid var(--nbx-rule); border-radius: 6px; font: 12px var(--nbx-mono); cursor: grab; touch-action: pan-y; user-select: none; }
.nbx-graph.nbx-dragging { cursor: grabbing; }
.nbx-graph text { fill: var(--nbx-ink); pointer-events: none; }
.nbx-graph .nbx-small { font-size: 10px; fill: var(--nbx-faint); }
.nbx-graph .nbx-faint { fill: var(--nbx-faint); font-weight: 400; }
.nbx-frame { fill: color-mix(in srgb, var(--nbx-g) 9%, transparent); stroke: var(--nbx-g); stroke-width: 1.5; }
.nbx-frame.nbx-same { stroke: var(--nbx-mark); stroke-width: 3.5; fill: var(--nbx-same); }
.nbx-dashed { stroke-dasharray: 6 3; }
.nbx-frame-title { cursor: pointer; font-size: 10.5px; font-weight: 700; }
.nbx-frame-title rect { fill: color-mix(in srgb, var(--nbx-g) 9%, var(--nbx-sheet)); }
.nbx-frame-title:hover rect, .nbx-frame-title:focus-visible rect { fill: color-mix(in srgb, var(--nbx-g) 30%, var(--nbx-sheet)); }
.nbx-wire { fill: none; stroke: var(--nbx-faint); stroke-width: 1.2; opacity: 0.75; }
.nbx-arrow { fill: var(--nbx-faint); }
.nbx-wire-label { font-size: 10px; }
.nbx-wire-label rect { fill: var(--nbx-sheet); }
.nbx-wire-label text { fill: var(--nbx-faint); }
.nbx-tiny text, .nbx-far .nbx-small, .nbx-far .nbx-wire-label, .nbx-far .nbx-arrow { display: none; }
.nbx-box { cursor: pointer; }
.nbx-box rect { fill: var(--nbx-ground); stroke: var(--nbx-g, var(--nbx-faint)); stroke-width: 1; }
.nbx-kind-library rect { stroke-dasharray: 4 2; }
.nbx-kind-input rect { fill: color-mix(in srgb, var(--nbx-g4) 12%, var(--nbx-ground)); }
.nbx-kind-constant rect, .nbx-kind-output rect { fill: color-mix(in srgb, var(--nbx-ink) 7%, var(--nbx-ground)); }
.nbx-kind-group rect { fill: color-mix(in srgb, var(--nbx-g, var(--nbx-faint)) 12%, var(--nbx-ground)); }
.nbx-box:hover rect { stroke-width: 2; }
.nbx-box.nbx-same rect { fill: color-mix(in srgb, var(--nbx-mark) 28%, var(--nbx-ground)); stroke: var(--nbx-mark); stroke-width: 3; stroke-dasharray: none; }
.nbx-box.nbx-near rect { stroke: var(--nbx-mark); stroke-width: 2; stroke-dasharray: 2 2; }
.nbx-box.nbx-hit rect { fill: color-mix(in srgb, var(--nbx-found) 35%, var(--nbx-ground)); }
.nbx-box.nbx-now rect { stroke: var(--nbx-ink); stroke-width: 3; }
.nbx-box:focus-visible, .nbx-frame-title:focus-visible { outline: none; }
.nbx-box:focus-visible rect { stroke: var(--nbx-brand); stroke-width: 3; }
.nbx-pinned .nbx-box:not(.nbx-same):not(.nbx-near) { opacity: 0.45; }

/* the inspector */
.nbx-inspector { flex: 1 1 120px; min-height: 84px; margin-top: 10px; padding: 6px 12px; overflow: auto; background: var(--nbx-sheet); border: 1px solid var(--nbx-rule); border-radius: 6px; font-size: 12px; line-height: 18px; }
.nbx-remark { display: flex; gap: 4px; }
.nbx-remark > .nbx-sign { width: 16px; }
.nbx-hint { color: var(--nbx-faint); }
.nbx-fact { color: var(--nbx-faint); }

/* figures */
.nbx-figures { columns: 2 400px; column-gap: 14px; }
.nbx .nbx-figure { margin: 0 0 14px; padding: 10px 14px 12px; border: 1px solid var(--nbx-rule); border-radius: 6px; background: var(--nbx-sheet); min-width: 0; }
.nbx-figures > .nbx-figure { break-inside: avoid; }
.nbx-figures > .nbx-wide { column-span: all; }
.nbx-figure figcaption { margin-bottom: 8px; font-size: 12px; text-align: left; color: inherit; font-style: normal; }
.nbx-plot { display: block; width: 100%; max-width: 680px; height: auto; font: 11px var(--jp-content-font-family, system-ui, sans-serif); }
.nbx-plot text { fill: var(--nbx-ink); stroke: var(--nbx-sheet); stroke-width: 3px; paint-order: stroke; stroke-linejoin: round; }
.nbx-plot .nbx-small { font-size: 10px; fill: var(--nbx-faint); }
.nbx-grid { stroke: var(--nbx-rule); stroke-width: 1; opacity: 0.6; }
.nbx-roof { stroke: var(--nbx-ink); stroke-width: 1.5; opacity: 0.7; }
.nbx-level { stroke: var(--nbx-faint); stroke-width: 1.5; stroke-dasharray: 5 4; }
.nbx-curve { fill: none; stroke: var(--nbx-g0); stroke-width: 2; }
.nbx-error { stroke: var(--nbx-g0); stroke-width: 1.5; }
.nbx-dot { fill: var(--nbx-g, var(--nbx-g0)); stroke: var(--nbx-sheet); stroke-width: 1.5; }
.nbx-plot .nbx-dot-number { stroke: none; fill: var(--nbx-ground0); font-size: 9.5px; font-weight: 700; pointer-events: none; }
.nbx-life { fill: color-mix(in srgb, var(--nbx-g) 22%, transparent); stroke: var(--nbx-g); stroke-width: 1; }
.nbx-lanes { max-height: 420px; overflow: auto; }
.nbx-bars { display: grid; grid-template-columns: fit-content(45%) minmax(60px, 1fr) auto; gap: 4px 10px; align-items: center; font-size: 12px; }
.nbx-bar-row { display: contents; }
.nbx-bar-name { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.nbx-bar-words { text-align: right; white-space: pre; font-variant-numeric: tabular-nums; color: var(--nbx-faint); }
.nbx-track { position: relative; display: block; height: 10px; border-radius: 3px; background: color-mix(in srgb, var(--nbx-ink) 6%, transparent); }
.nbx-fill { display: block; height: 100%; border-radius: 3px; background: color-mix(in srgb, var(--nbx-g, var(--nbx-g0)) 75%, transparent); }
.nbx-range { position: absolute; top: 4px; height: 2px; background: var(--nbx-ink); }
.nbx-rule { position: absolute; top: -2px; bottom: -2px; border-left: 2px dashed var(--nbx-ink); }
.nbx-legend { grid-column: 1 / -1; font-size: 11px; }
.nbx-scroll { overflow-x: auto; }
.nbx .nbx-table { border-collapse: collapse; width: 100%; margin: 0; font-size: 12px; font-variant-numeric: tabular-nums; border: 0; color: inherit; table-layout: auto; }
.nbx .nbx-table th, .nbx .nbx-table td { text-align: left; padding: 3px 12px 3px 0; border: 0; border-bottom: 1px solid var(--nbx-rule); background: none; vertical-align: top; white-space: nowrap; }
.nbx .nbx-table th { font-weight: 400; color: var(--nbx-faint); }
.nbx .nbx-table tr:last-child td { border-bottom: 0; }
.nbx .nbx-table .nbx-right { text-align: right; }
.nbx .nbx-table td.nbx-wrap { white-space: normal; min-width: 30ch; }
.nbx-kernel-name { display: inline-flex; gap: 6px; align-items: center; }
.nbx-fact-lists { display: flex; flex-wrap: wrap; gap: 12px 36px; font-size: 12px; }
.nbx .nbx-facts dl { display: grid; grid-template-columns: auto 1fr; gap: 1px 14px; margin: 4px 0 0; }
.nbx .nbx-facts dt { white-space: nowrap; color: var(--nbx-faint); font-weight: 400; margin: 0; }
.nbx .nbx-facts dd { margin: 0; font-variant-numeric: tabular-nums; }

/* passes, decisions, processors, history */
.nbx-timeline { height: calc(var(--nbx-height) + 64px); overflow: auto; border: 1px solid var(--nbx-rule); border-radius: 6px; background: var(--nbx-sheet); padding: 4px 0; }
.nbx-timeline-level { padding: 8px 12px 2px; font-size: 11px; color: var(--nbx-faint); letter-spacing: 0.04em; }
.nbx-pass { display: grid; grid-template-columns: minmax(0, 1fr) auto 60px 58px; gap: 0 8px; align-items: center; padding: 3px 12px 3px 9px; border-left: 3px solid transparent; font-size: 12px; cursor: pointer; }
.nbx-pass .nbx-run { grid-column: 3; margin-top: 2px; }
.nbx-legend-sign { display: inline-block; width: 16px; height: 8px; margin: 0 6px 0 0; border-radius: 2px; background: color-mix(in srgb, var(--nbx-g) 75%, transparent); }
.nbx-legend-sign:not(:first-child) { margin-left: 16px; }
.nbx-passes > .nbx-pane { height: calc(var(--nbx-height) + 64px); }
.nbx-passes > .nbx-pane > .nbx-code { flex: 1 1 0; height: auto; min-height: 0; }
.nbx-short > .nbx-code { height: auto; max-height: var(--nbx-height); }
.nbx-pass:hover { background: color-mix(in srgb, var(--nbx-ink) 5%, transparent); }
.nbx-pass[aria-selected='true'] { background: var(--nbx-same); border-left-color: var(--nbx-mark); }
.nbx-pass-name { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; font-weight: 600; }
.nbx-idle .nbx-pass-name { font-weight: 400; color: var(--nbx-faint); }
.nbx-change { color: var(--nbx-faint); font-size: 11px; font-variant-numeric: tabular-nums; }
.nbx-about { margin: 2px 0 6px; flex: 1 1 200px; }
.nbx-empty { display: grid; place-items: center; min-height: 120px; color: var(--nbx-faint); border: 1px dashed var(--nbx-rule); border-radius: 6px; }
.nbx-decision { padding: 8px 0 6px; border-top: 1px solid var(--nbx-rule); }
.nbx-decision:first-child { border-top: 0; }
.nbx-where { margin-bottom: 2px; }
.nbx-decision .nbx-remark { padding-left: 4px; }
.nbx-two { display: grid; grid-template-columns: 1fr 1fr; gap: 14px; }
.nbx-two .nbx-bar { flex-wrap: nowrap; }
.nbx-two .nbx-select { flex: 0 1 auto; min-width: 90px; }
.nbx-cut { min-width: 0; flex: 1 1 0; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.nbx-two > .nbx-pane > .nbx-bar { align-items: center; }
.nbx .nbx-select { font: inherit; font-size: 12px; height: 24px; max-width: 100%; padding: 1px 6px; color: var(--nbx-ink); background: var(--nbx-ground); border: 1px solid var(--nbx-rule); border-radius: 4px; }
.nbx .nbx-changes { margin: 4px 0 12px; padding-left: 20px; }
@container (max-width: 720px) { .nbx-two { grid-template-columns: 1fr; } .nbx-timeline { height: 260px; } }

@media (prefers-reduced-motion: no-preference) {
  .nbx-button, .nbx-tab { transition: background-color 0.12s, color 0.12s; }
}
@media (forced-colors: active) {
  .nbx-line.nbx-same { outline: 2px solid Highlight; outline-offset: -2px; }
  .nbx-line.nbx-near { outline: 1px dotted Highlight; outline-offset: -1px; }
}
@media not print { .nbx-on-paper { display: none !important; } }
@media print {
  .nbx-page:has(+ script + .nbx-on-paper) { display: none; }
  .nbx-tools, .nbx-ruler { display: none; }
  .nbx { --nbx-height: 900px; }
}

/* in a panel or a page of its own there is more room */
.nbx-roomy { height: 100%; overflow: auto; padding: 8px 14px; background: var(--jp-layout-color0, Canvas); }
.nbx-roomy .nbx { --nbx-height: max(320px, calc(100vh - 340px)); }
`;

/** Put the style sheet into a document, once. */
export function attachStyle(target: Document): void {
  if (!target.getElementById('nbx-style')) {
    const element = target.createElement('style');
    element.id = 'nbx-style';
    element.textContent = STYLE;
    target.head.append(element);
  }
}
