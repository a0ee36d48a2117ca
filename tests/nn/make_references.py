"""Makes references.npz with PyTorch: `python tests/nn/make_references.py` where torch is installed.

For every case the state that PyTorch's module has, and its outputs, as float32 arrays.  Weights and
running statistics are made anew from a seed, so that every one of them matters.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent))
from cases import CASES, KEYWORDS, arrays, flat


def reference(name: str) -> dict[str, Any]:
    """State and outputs of one case, by key."""
    torch.manual_seed(sum(name.encode()))
    build, _ = CASES[name]
    module = build(torch.nn).eval()
    for key, value in module.state_dict().items():
        if value.is_floating_point():
            value.uniform_(0.5, 1.5) if key.endswith("running_var") else value.uniform_(-0.5, 0.5)
    inputs = [torch.from_numpy(x) for x in arrays(name)]
    keywords = {
        k: torch.from_numpy(v) if isinstance(v, np.ndarray) else v
        for k, v in KEYWORDS[name].items()
    }
    with torch.no_grad():
        outputs = flat(module(*inputs, **keywords))
    state = {f"{name}/state/{k}": v.numpy() for k, v in module.state_dict().items()}
    return state | {f"{name}/output/{k}": v.numpy() for k, v in enumerate(outputs)}


if __name__ == "__main__":
    found: dict[str, Any] = {}
    for name in CASES:
        found |= reference(name)
    np.savez_compressed(Path(__file__).parent / "references.npz", **found)
