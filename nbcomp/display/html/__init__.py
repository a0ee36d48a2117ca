"""The HTML form of a view: complete without script and without style sheets.

Only elements that survive every sanitiser (`details`, `pre`, `table`, `img`) with inline styles;
with those stripped too, everything is still there to read.  Colours come from JupyterLab's
variables, then VS Code's, then neutral fallbacks, so light and dark themes both work.  Everything
is escaped.  Knows views and drawings; it must not know notebooks.
"""
