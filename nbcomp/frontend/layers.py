"""Which of the user's modules are at work: the frames of the program whose first argument is one.

A module is what has a `state_dict`, as a model is elsewhere.  Knows frames and shadows, not what
layers compute.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from nbcomp.frontend.location import Running, layer_frames, user_frames
from nbcomp.frontend.objects import shadowed
from nbcomp.frontend.session import Session


def layers_at_work(session: Session) -> tuple[str, ...]:
    """The modules whose methods run now, the outermost first: "blocks.0: Block".

    A method that another of the same module called counts once.  Layers of nbcomp's own are what
    the user's line says, unless it stands for several, as the call of a `Sequential` does, or there
    is none in the program: then the innermost is the last, as "blocks.1: nn.Linear".
    """
    frames = list(user_frames(session.unrolled.root))
    users, own = _of(frames), _of(layer_frames())
    if own and (len(own) > 1 or not frames):
        path, colon, kind = own[0].rpartition(": ")
        users.insert(0, f"{path}{colon}nn.{kind}")
    return tuple(reversed(users))


def _of(frames: Iterable[Running]) -> list[str]:
    """The modules whose methods these frames are of, in this order."""
    found: list[str] = []
    for frame in frames:
        names = frame.f_code.co_varnames
        layer = _named(frame.f_locals.get(names[0])) if frame.f_code.co_argcount else ""
        if layer and layer not in found[-1:]:
            found.append(layer)
    return found


def _named(value: Any) -> str:
    known = shadowed(value)
    if known is None or not hasattr(known[0], "state_dict"):
        return ""
    name, kind = known[1].dotted(), type(known[0]).__name__
    return f"{name}: {kind}" if name and name != kind else kind
