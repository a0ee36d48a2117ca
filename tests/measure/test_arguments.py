"""Copies of arguments, and batches of them."""

from __future__ import annotations

import numpy as np

from nbcomp.measure import arguments


def test_copies_keep_strides_and_overlaps() -> None:
    base = np.arange(20.0).reshape(4, 5)
    views = (base[:, ::-2], base[1:], base.T, np.broadcast_to(base[0], (3, 5)), np.zeros(0))
    copies = arguments.twin(views)
    for view, copy in zip(views, copies, strict=True):
        assert copy.strides == view.strides
        assert np.array_equal(copy, view)
        assert not np.shares_memory(copy, base)
    assert np.shares_memory(copies[0], copies[1])
    assert not copies[3].flags.writeable


def test_rows_are_repeated_or_cut() -> None:
    x = np.arange(6).reshape(3, 2)
    (longer,) = arguments.resized((x,), (0,), 5)
    assert longer.tolist() == [[0, 1], [2, 3], [4, 5], [0, 1], [2, 3]]
    (shorter,) = arguments.resized((x,), (0,), 2)
    assert shorter.tolist() == [[0, 1], [2, 3]]
