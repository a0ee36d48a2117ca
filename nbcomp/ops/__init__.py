"""The operators, one file per family.  Importing the package fills `REGISTRY` and `NUMPY`."""

from nbcomp.ops import (
    arithmetic,
    choose,
    contract,
    create,
    elementary,
    floats,
    logic,
    move,
    pieces,
    power,
    reduce,
)

__all__ = [
    "arithmetic",
    "choose",
    "contract",
    "create",
    "elementary",
    "floats",
    "logic",
    "move",
    "pieces",
    "power",
    "reduce",
]
