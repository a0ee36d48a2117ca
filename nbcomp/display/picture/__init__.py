"""Graphs as pictures: which nodes stand together, where every box lies, and the picture as SVG.

`draw` gives the drawing, plain data; `svg` and the explorer render it.
"""
