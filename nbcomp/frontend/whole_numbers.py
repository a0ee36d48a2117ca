"""Arithmetic of Python ints that are known only at run time: in 64 bits, and checked.

What leaves 64 bits ends the program with an `OverflowError`, upon which Python runs the call.  It
knows graphs, and one small kernel; nothing of tracers.
"""

from __future__ import annotations

from nbcomp.frontend.location import here
from nbcomp.graph.control import Loops, Result
from nbcomp.graph.ir import Node, apply
from nbcomp.graph.op import Constant
from nbcomp.loop.grammar import Apply, Block, Buffer, Exit, Failure, If, Kernel, Load, Store
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
    one, other = (Buffer(name, INT64, (), (), "input") for name in "ab")
    out = Buffer("out", INT64, (), (), "output")
    both = Load(INT64, one, (), where), Load(INT64, other, (), where)
    failure = Failure("OverflowError", "a Python int leaves 64 bits", where, certain=False)
    lost = Apply(BOOL, f"{fn}_overflows", both, where)
    body = (
        If(lost, (Exit(failure, None, where),), (), where),
        Store(out, (), Apply(INT64, fn, both, where), where),
    )
    kernel = Kernel(f"checked_{fn}", (one, other, out), (Block(body, where),), where, written=True)
    loops = apply(Loops(kernel), cast(a, INT64), cast(b, INT64), name=kernel.name)
    return apply(Result(0, WHOLE), loops), loops
