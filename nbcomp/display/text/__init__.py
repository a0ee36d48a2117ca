"""The terminal form of a view: a headline, the user's lines with their marks, narrow tables.

Reads well alone, within any width and without colours.  Knows views; it must not know where they
are printed.
"""
