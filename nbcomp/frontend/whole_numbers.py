"""Python ints that are known only at run time: arithmetic in 64 bits, and ranges, checked.

What leaves 64 bits, or the dtype of the arrays that a number meets, ends the program with an
`OverflowError`, upon which Python runs the call.  Knows graphs, and small kernels; no tracers.
"""

from __future__ import annotations

from nbcomp.frontend.location import here
from nbcomp.graph.control import Loops, Result
from nbcomp.graph.ir import Node, apply
from nbcomp.graph.op import Constant
from nbcomp.loop.grammar import (
    Apply,
    Block,
    Buffer,
    Exit,
    Expr,
    Failure,
    If,
    Kernel,
    Load,
    Store,
    const,
)
from nbcomp.ops.operand import cast
from nbcomp.types import BOOL, INT64, TensorType

WHOLE = TensorType(INT64, ())
FUNCTIONS = {"add": "add", "sub": "subtract", "mul": "multiply"}  # Python's names: the loop IR's
SMALL = 1 << 20  # a loop that adds as much takes 2⁴³ rounds to leave 64 bits: days at least


def is_counting(name: str, a: Node, b: Node) -> bool:
    """Whether this only adds a small constant, as counters do: there is no need to check that."""
    steps = {"add": (a, b), "sub": (b,), "mul": ()}[name]
    return any(isinstance(n.op, Constant) and abs(int(n.op.value)) <= SMALL for n in steps)


def checked(name: str, a: Node, b: Node) -> tuple[Node, Node]:
    """A sum, difference or product of two whole numbers, and the node that may raise."""
    fn, where = FUNCTIONS[name], here()
    both = tuple(Load(INT64, b, (), where) for b in _operands("ab"))
    lost = Apply(BOOL, f"{fn}_overflows", both, where)
    value = Apply(INT64, fn, both, where)
    return _ending(f"checked_{fn}", lost, "a Python int leaves 64 bits", value, a, b)


def within(a: Node, low: int, high: int) -> tuple[Node, Node]:
    """A whole number that is to be within low..high, and the node that may raise."""
    where = here()
    value = Load(INT64, _operands("a")[0], (), where)
    less, more = (
        Apply(BOOL, fn, (value, const(bound, INT64)), where)
        for fn, bound in (("less", low), ("greater", high))
    )
    outside = Apply(BOOL, "logical_or", (less, more), where)
    message = "a Python int out of bounds for the dtype of an array"
    return _ending("checked_range", outside, message, value, a)


def _operands(names: str) -> list[Buffer]:
    return [Buffer(name, INT64, (), (), "input") for name in names]


def _ending(name: str, bad: Expr, message: str, value: Expr, *args: Node) -> tuple[Node, Node]:
    """A value of whole numbers, and the node that ends the program instead where it is bad."""
    where = here()
    out = Buffer("out", INT64, (), (), "output")
    failure = Failure("OverflowError", message, where, certain=False)
    body = If(bad, (Exit(failure, None, where),), (), where), Store(out, (), value, where)
    buffers = (*_operands("ab"[: len(args)]), out)
    kernel = Kernel(name, buffers, (Block(body, where),), where, written=True)
    loops = apply(Loops(kernel), *(cast(a, INT64) for a in args), name=kernel.name)
    return apply(Result(0, WHOLE), loops), loops
