"""Against PyTorch itself, where it is installed: its states, other numbers, printed trees."""

from __future__ import annotations

import numpy as np
import pytest

from nbcomp import nn
from tests.nn.cases import CASES, KEYWORDS, arrays, flat
from tests.nn.test_layers import close

torch = pytest.importorskip("torch")


PRINTED = [name for name in CASES if "encoder" not in name and "attention" not in name]


@pytest.mark.parametrize("name", PRINTED)  # the others hold subclasses that PyTorch keeps private
def test_printed_tree(name: str) -> None:
    build, _ = CASES[name]
    assert repr(build(nn)) == repr(build(torch.nn))


@pytest.mark.parametrize("name", CASES)
def test_live(name: str) -> None:
    """With PyTorch at hand: its own modules' states and outputs, on other numbers."""
    build, _ = CASES[name]
    theirs, ours = build(torch.nn).eval(), build(nn)
    ours.load_state_dict(theirs.state_dict())
    inputs = [x + x.dtype.type(0) if x.dtype.kind == "i" else 2 * x for x in arrays(name)]
    keywords = KEYWORDS[name]
    given = {
        k: torch.from_numpy(v) if isinstance(v, np.ndarray) else v for k, v in keywords.items()
    }
    with torch.no_grad():
        expected = flat(theirs(*map(torch.from_numpy, inputs), **given))
    close(ours(*inputs, **keywords), [t.numpy() for t in expected])
