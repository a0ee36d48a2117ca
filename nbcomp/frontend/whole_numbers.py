"""Python ints that are known only at run time: arithmetic in 64 bits, and ranges, checked.

What leaves 64 bits, or the dtype of the arrays that a number meets, ends the program with an
`OverflowError`, upon which Python runs the call.  Knows graphs, and small kernels; no tracers.
"""

from __future__ import annotations

from nbcomp.frontend.checks import ending, scalars
from nbcomp.frontend.location import here
from nbcomp.graph.ir import Node
from nbcomp.graph.op import Constant
from nbcomp.loop.grammar import Apply, Failure, Load, const
from nbcomp.types import BOOL, INT64

FUNCTIONS = {"add": "add", "sub": "subtract", "mul": "multiply"}  # Python's names: the loop IR's
SMALL = 1 << 20  # a loop that adds as much takes 2⁴³ rounds to leave 64 bits: days at least


def is_counting(name: str, a: Node, b: Node) -> bool:
    """Whether this only adds a small constant, as counters do: there is no need to check that."""
    steps = {"add": (a, b), "sub": (b,), "mul": ()}[name]
    return any(isinstance(n.op, Constant) and abs(int(n.op.value)) <= SMALL for n in steps)


def checked(name: str, a: Node, b: Node) -> tuple[Node, Node]:
    """A sum, difference or product of two whole numbers, and the node that may raise."""
    fn, where = FUNCTIONS[name], here()
    operands = scalars("ab", INT64)
    both = tuple(Load(INT64, b, (), where) for b in operands)
    lost = Apply(BOOL, f"{fn}_overflows", both, where)
    value = Apply(INT64, fn, both, where)
    failure = Failure("OverflowError", "a Python int leaves 64 bits", where, certain=False)
    return ending(f"checked_{fn}", failure, lost, value, operands, a, b)


def within(a: Node, low: int, high: int) -> tuple[Node, Node]:
    """A whole number that is to be within low..high, and the node that may raise."""
    where = here()
    operands = scalars("a", INT64)
    value = Load(INT64, operands[0], (), where)
    less, more = (
        Apply(BOOL, fn, (value, const(bound, INT64)), where)
        for fn, bound in (("less", low), ("greater", high))
    )
    outside = Apply(BOOL, "logical_or", (less, more), where)
    message = "a Python int out of bounds for the dtype of an array"
    failure = Failure("OverflowError", message, where, certain=False)
    return ending("checked_range", failure, outside, value, operands, a)
