"""Which of the user's modules are at work: the frames of the program whose first argument is one.

A module is what has a `state_dict`, as a model is elsewhere.  Knows frames and shadows, not what
layers compute.
"""

from __future__ import annotations

from typing import Any

from nbcomp.frontend.location import user_frames
from nbcomp.frontend.objects import shadowed
from nbcomp.frontend.session import Session


def layers_at_work(session: Session) -> tuple[str, ...]:
    """The modules whose methods run now, the outermost first: "blocks.0: Block".

    A method that another of the same module called counts once.
    """
    found: list[str] = []
    for frame in user_frames(session.unrolled.root):
        names = frame.f_code.co_varnames
        layer = _named(frame.f_locals.get(names[0])) if frame.f_code.co_argcount else ""
        if layer and layer not in found[-1:]:
            found.append(layer)
    return tuple(reversed(found))


def _named(value: Any) -> str:
    known = shadowed(value)
    if known is None or not hasattr(known[0], "state_dict"):
        return ""
    name, kind = known[1].dotted(), type(known[0]).__name__
    return f"{name}: {kind}" if name and name != kind else kind
