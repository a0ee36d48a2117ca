"""A result tree as a Python function that puts results of its kind together.

`rebuild` walks a tree at every call; a function written out for it does the same in a tenth of the
time, which is much of what a short call costs.  Knows result trees, not where outputs come from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from nbcomp.frontend.result import Out, Record, Static, Tree, ViewOf, rebuild

MOST = 500  # parts of a tree: a longer one takes long to compile, beside which a walk is nothing
DEEPEST = 40  # brackets within brackets: Python reads no more than about 200


def rebuilder(tree: Tree) -> Callable[[Sequence[Any]], Any]:
    """What gives `rebuild(tree, outputs, ())` for outputs.  No leaf is the caller's own."""
    writer = _Writer()
    writer.count(tree, 0)
    if writer.deepest > DEEPEST or writer.uses.total() > MOST:
        return lambda outputs: rebuild(tree, outputs, ())
    text = f"lambda outputs: {writer.text(tree)}"
    made: Callable[[Sequence[Any]], Any] = eval(text, writer.known)
    return made


class _Writer:
    """Writes an expression; what it refers to is in `known` by name."""

    def __init__(self) -> None:
        self.known: dict[str, Any] = {"__name__": __name__}
        self.uses: Counter[int] = Counter()
        self.deepest = 0
        self._named: dict[int, str] = {}

    def count(self, tree: Any, depth: int) -> None:
        """See how often each part is used: what is used twice is one object."""
        self.uses[id(tree)] += 1
        self.deepest = max(self.deepest, depth)
        if self.uses[id(tree)] == 1:
            for part in _parts(tree):
                self.count(part, depth + 1)

    def text(self, tree: Any) -> str:
        """The expression for a part of the tree."""
        if id(tree) in self._named:
            return self._named[id(tree)]
        text = self._text(tree)
        if self.uses[id(tree)] == 1:
            return text
        name = self._named[id(tree)] = f"part{len(self._named)}"
        return f"({name} := {text})"

    def _text(self, tree: Any) -> str:
        match tree:
            case Out(index, None):
                return f"outputs[{index}]"
            case Out(index, python):
                return f"{self._name(python)}(outputs[{index}])"
            case ViewOf(base, views):
                text = f"{self.text(base)}[...]"
                for view in views:
                    text = f"{self._name(view.reference)}({text})"
                return text
            case Static(value):
                return self._name(value)
            case Record(make, fields):
                given = ", ".join(f"{k!r}: {self.text(v)}" for k, v in fields.items())
                return f"{self._name(make)}(**{{{given}}})"
            case dict():
                return (
                    f"{{{', '.join(f'{self._name(k)}: {self.text(v)}' for k, v in tree.items())}}}"
                )
            case _:
                return self._sequence(tree)

    def _sequence(self, tree: Any) -> str:
        inner = "".join(f"{self.text(part)}, " for part in tree)
        if type(tree) is tuple:
            return f"({inner})"
        return f"[{inner}]" if type(tree) is list else f"{self._name(type(tree))}([{inner}])"

    def _name(self, value: Any) -> str:
        name = f"known{len(self.known)}"
        self.known[name] = value
        return name


def _parts(tree: Any) -> Sequence[Any]:
    match tree:
        case ViewOf(base, _):
            return (base,)
        case Out() | Static():
            return ()
        case Record(_, fields):
            return tuple(fields.values())
        case dict():
            return tuple(tree.values())
        case _:
            return tuple(tree)
