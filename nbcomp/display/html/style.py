"""The inline styles of the HTML form, and the colours behind them."""

from __future__ import annotations

INK = "var(--jp-content-font-color1,var(--vscode-foreground,inherit))"
FAINT = "var(--jp-content-font-color2,var(--vscode-descriptionForeground,#77808a))"
RULE = "var(--jp-border-color2,var(--vscode-panel-border,#80808059))"
SHEET = "var(--jp-layout-color2,var(--vscode-textCodeBlock-background,#8080801a))"
SANS = "var(--jp-content-font-family,var(--vscode-font-family,system-ui,sans-serif))"
MONO = "var(--jp-code-font-family,var(--vscode-editor-font-family,ui-monospace,monospace))"

ROOT = f"color:{INK};font-family:{SANS};font-size:13px;line-height:1.45;max-width:1000px"
PRE = (
    f"background:{SHEET};color:inherit;border:0;border-radius:4px;margin:4px 0;padding:8px 10px;"
    f"overflow:auto;max-height:420px;font-family:{MONO};font-size:12px;line-height:1.4;white-space:pre"
)
CELL = f"padding:2px 10px 2px 0;border:0;border-bottom:1px solid {RULE};vertical-align:top"
# JupyterLab gives all columns of a table the same width, and every other row a shade.
TABLE = "border-collapse:collapse;font-size:inherit;table-layout:auto"
LEFT, RIGHT = f"text-align:left;{CELL}", f"text-align:right;white-space:nowrap;{CELL}"
SUMMARY = "cursor:pointer;padding:2px 0"
INDENT = f"margin:2px 0 8px 4px;padding-left:12px;border-left:1px solid {RULE}"

# A bar beside the headline; the words say the same.
STATUS = {"faster": "#009e73", "same": "#8c959f", "slower": "#d55e00", "wrong": "#cf222e"}

# Signs and colours (the hues of Okabe and Ito) of what was done, was not, and what is so: told
# apart by shape.  As dark as they are light: small words can be read on white and on black.
SIGNS = {"applied": "✓", "missed": "✗", "analysis": "·"}
MARKS = {"applied": "#008b65", "missed": "#c85800", "analysis": "#737a82"}
