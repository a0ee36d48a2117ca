"""What to write instead: the error for a Python idiom that needs an array's values while compiling.

The syntax tree at the user's place tells which idiom it is (if, while, and, not, min, int, a
comparison chain ...); the message names the user's own expression and the hint spells the NumPy
form of it.  Knows Python syntax, not arrays.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from nbcomp.errors import CaptureError
from nbcomp.frontend.location import enclosing, span_of
from nbcomp.record import Location

Advice = tuple[str, str, ast.AST]  # message, hint, the expression to point at

CONVERSIONS = {
    "bool": "whether it is true",
    "int": "a Python int",
    "float": "a Python float",
    "complex": "a Python complex",
    "index": "a whole number",
    "array": "its elements",
    "hash": "its hash",
    "format": "its digits",
    "item": "a Python number",
    "tolist": "a list of Python numbers",
    "tobytes": "its bytes",
    "tofile": "its elements",
    "dump": "its elements",
    "dumps": "its elements",
}


def refusal(purpose: str, location: Location | None, what: str) -> CaptureError:
    """The error for needing a value: `purpose` is a key of CONVERSIONS, `what` the array's type."""
    advice = advice_at(location)
    if advice is not None and location is not None:
        message, hint, culprit = advice
        return CaptureError(f"{message} ({what})", span_of(culprit, location), hint)
    return CaptureError(
        f"this needs {CONVERSIONS[purpose]} while compiling, but the array ({what}) has values only"
        " at run time",
        location,
        "keep it an array: NumPy functions and operators take it as it is",
    )


def advice_at(location: Location | None) -> Advice | None:
    """What to write in place of the idiom at a place; None if there is none that is known."""
    chain = enclosing(location) if location else []
    for depth, node in enumerate(chain):
        if _is_part_of_test(node, chain[depth + 1 :]):
            continue
        advise = ADVICE.get(type(node))
        if advise is not None and (advice := advise(node, chain[:depth])) is not None:
            return advice
        if isinstance(node, ast.stmt):
            break
    return None


def _is_part_of_test(node: ast.AST, around: list[ast.AST]) -> bool:
    """Whether an `and`, `or`, `not` or comparison is part of a condition with advice of its own."""
    if not around or not isinstance(node, ast.BoolOp | ast.UnaryOp | ast.Compare):
        return False
    parent = around[0]
    if isinstance(parent, ast.UnaryOp):
        return isinstance(parent.op, ast.Not)
    if isinstance(parent, ast.If | ast.While | ast.IfExp | ast.Assert):
        return parent.test is node
    return isinstance(parent, ast.BoolOp | ast.comprehension)


def _source(node: ast.AST | None) -> str:
    return ast.unparse(node) if node is not None else "..."


def _decides(test: ast.expr, keyword: str) -> str:
    return f"`{keyword}` cannot choose while compiling: `{_source(test)}` is known only at run time"


def _condition(test: ast.expr) -> ast.expr:
    """The test with `and`, `or`, `not` and chains written for arrays."""
    match test:
        case ast.BoolOp(op, values):
            fn = "logical_and" if isinstance(op, ast.And) else "logical_or"
            result = _condition(values[0])
            for value in values[1:]:
                result = _call(fn, result, _condition(value))
            return result
        case ast.UnaryOp(ast.Not(), operand):
            return _call("logical_not", _condition(operand))
        case ast.Compare(left, ops, comparators) if len(ops) > 1:
            return _chain(left, ops, comparators)
        case _:
            return test


def _chain(left: ast.expr, ops: list[ast.cmpop], comparators: list[ast.expr]) -> ast.expr:
    sides = [left, *comparators]
    pairs: list[ast.expr] = [
        ast.Compare(a, [op], [b]) for a, op, b in zip(sides, ops, comparators, strict=False)
    ]
    result = pairs[0]
    for pair in pairs[1:]:
        result = ast.BinOp(result, ast.BitAnd(), pair)
    return result


def _call(name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(ast.Name("np"), name), list(args), [])


def _where(test: ast.expr, yes: ast.expr, no: ast.expr) -> str:
    return _source(_call("where", _condition(test), yes, no))


# ------------------------------------------------------------------------------- the idioms


def _if(node: ast.AST, inner: list[ast.AST]) -> Advice | None:
    assert isinstance(node, ast.If)
    both = f"compute both and select: np.where({_source(_condition(node.test))}, if true, if false)"
    hint = _branches(node, inner) or both
    return _decides(node.test, "if"), hint, node.test


def _branches(node: ast.If, inner: list[ast.AST]) -> str:
    """`if c: y = a` / `else: y = b` and the like as one line with np.where."""
    yes = _single(node.body)
    no = _single(node.orelse)
    match yes, no:
        case ast.Assign([ast.Name(name)], value), ast.Assign([ast.Name(other)], otherwise) if (
            name == other
        ):
            return f"{name} = {_where(node.test, value, otherwise)}"
        case ast.Assign([ast.Name(name)], value), None if not node.orelse:
            return f"{name} = {_where(node.test, value, ast.Name(name))}"
        case ast.AugAssign(ast.Name(name), op, value), None if not node.orelse:
            changed = ast.BinOp(ast.Name(name), op, value)
            return f"{name} = {_where(node.test, changed, ast.Name(name))}"
        case ast.Return(value), ast.Return(otherwise) if value and otherwise:
            return f"return {_where(node.test, value, otherwise)}"
        case ast.Return(value), None if value and not node.orelse:
            where = _where(node.test, value, ast.Name("..."))
            return f"return {where} with what follows as the third part"
        case _:
            return ""


def _single(body: list[ast.stmt]) -> ast.stmt | None:
    return body[0] if len(body) == 1 else None


def _while(node: ast.AST, inner: list[ast.AST]) -> Advice | None:
    assert isinstance(node, ast.While)
    return (
        f"how often `while {_source(node.test)}` runs is known only at run time",
        "loop a fixed number of times (`for _ in range(n)`), and keep what is done by np.where",
        node.test,
    )


def _conditional(node: ast.AST, inner: list[ast.AST]) -> Advice | None:
    assert isinstance(node, ast.IfExp)
    return _decides(node.test, "if"), _where(node.test, node.body, node.orelse), node.test


def _assert(node: ast.AST, inner: list[ast.AST]) -> Advice | None:
    assert isinstance(node, ast.Assert)
    return (
        f"`assert {_source(node.test)}` needs a value that is known only at run time",
        "check it before or after calling the compiled function",
        node.test,
    )


def _bool_op(node: ast.AST, inner: list[ast.AST]) -> Advice | None:
    assert isinstance(node, ast.BoolOp)
    is_and = isinstance(node.op, ast.And)
    keyword = "and" if is_and else "or"
    message = f"`{keyword}` needs to know now whether `{_source(node.values[0])}` is true"
    if all(isinstance(v, ast.Compare | ast.BoolOp) or _is_not(v) for v in node.values):
        return message, _source(_condition(node)), node
    result = node.values[-1]
    for value in reversed(node.values[:-1]):
        result = (
            _call("where", value, result, value) if is_and else _call("where", value, value, result)
        )
    return message, _source(result), node


def _is_not(node: ast.expr) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)


def _not(node: ast.AST, inner: list[ast.AST]) -> Advice | None:
    assert isinstance(node, ast.UnaryOp)
    if not isinstance(node.op, ast.Not):
        return None
    return (
        f"`not` needs to know now whether `{_source(node.operand)}` is true",
        _source(_call("logical_not", node.operand)),
        node,
    )


def _compare(node: ast.AST, inner: list[ast.AST]) -> Advice | None:
    assert isinstance(node, ast.Compare)
    if len(node.ops) > 1:
        fixed = _chain(node.left, node.ops, node.comparators)
        message = (
            f"the chain `{_source(node)}` is an `and`, which needs a truth value while compiling"
        )
        return message, _source(fixed), node
    if isinstance(node.ops[0], ast.In | ast.NotIn):
        equal = _source(ast.Compare(node.comparators[0], [ast.Eq()], [node.left]))
        form = (
            f"({equal}).any()" if isinstance(node.ops[0], ast.In) else f"({equal}).all() == False"
        )
        return f"`{_source(node)}` must be true or false while compiling", form, node
    return None


CALLS = {
    "min": "np.minimum",
    "max": "np.maximum",
    "bool": "{0} != 0",
    "int": "{0}.astype(np.int64), a number of NumPy's, and int(…) of what the function returns",
    "float": "{0}.astype(np.float64), a number of NumPy's, and float(…) of what the function "
    "returns",
    "round": "np.round({0})",
    "range": "a fixed number, with np.where to ignore the iterations beyond",
    "any": "np.any({0})",
    "all": "np.all({0})",
    "sorted": "np.sort({0})",
    "list": "{0} itself: it can be indexed and iterated over",
    "str": "printing outside the compiled function",
    "complex": "real arithmetic: complex numbers are not compiled",
}
METHODS = {
    "item": "the 0-d array itself: it takes part in arithmetic as it is",
    "tolist": "the array itself: it can be indexed and iterated over",
    "format": "printing outside the compiled function",
}


def _of_call(node: ast.AST, inner: list[ast.AST]) -> Advice | None:
    assert isinstance(node, ast.Call)
    args = [_source(a) for a in node.args]
    message = f"`{_source(node)}` needs a value that is known only at run time"
    match node.func:
        case ast.Name(name) if name in ("min", "max") and len(args) > 1:
            form = args[0]
            for other in args[1:]:
                form = f"{CALLS[name]}({form}, {other})"
            return message, form, node
        case ast.Name(name) if name in ("min", "max"):
            return message, f"np.{name}({args[0] if args else '...'})", node
        case ast.Name(name) if name in CALLS:
            return message, CALLS[name].format(args[0] if args else "..."), node
        case ast.Attribute(_, name) if name in METHODS:
            return message, METHODS[name], node
        case ast.Attribute(ast.Name("math"), name):
            return message, f"np.{name}({', '.join(args)})", node
        case ast.Attribute(ast.Name("np" | "numpy"), name) if args and _is_dtype(name):
            return message, f"{args[0]}.astype(np.{name})", node
        case _:
            return None


def _is_dtype(name: str) -> bool:
    return name.rstrip("0123456789_") in (
        "float",
        "int",
        "uint",
        "bool",
        "double",
        "single",
        "half",
    )


def _loop(node: ast.AST, inner: list[ast.AST]) -> Advice | None:
    if isinstance(node, ast.For) and inner and inner[-1] is node.iter:
        message = f"`for ... in {_source(node.iter)}` needs values that are known only at run time"
        return message, "loop over a fixed range", node.iter
    return None


def _formatted(node: ast.AST, inner: list[ast.AST]) -> Advice | None:
    assert isinstance(node, ast.JoinedStr)
    if all(isinstance(v, ast.Constant) for v in node.values):
        return None  # a format within
    message = f"`{_source(node)}` needs digits that are known only at run time"
    return message, "formatting outside the compiled function", node


def _filter(node: ast.AST, inner: list[ast.AST]) -> Advice | None:
    assert isinstance(node, ast.comprehension)
    if not inner or inner[-1] not in node.ifs:
        return None
    test = inner[-1]
    assert isinstance(test, ast.expr)
    return _decides(test, "if"), "keep all elements and choose with np.where(condition, x, y)", test


ADVICE: dict[type[ast.AST], Callable[[ast.AST, list[ast.AST]], Advice | None]] = {
    ast.If: _if,
    ast.While: _while,
    ast.IfExp: _conditional,
    ast.Assert: _assert,
    ast.BoolOp: _bool_op,
    ast.UnaryOp: _not,
    ast.Compare: _compare,
    ast.Call: _of_call,
    ast.For: _loop,
    ast.JoinedStr: _formatted,
    ast.comprehension: _filter,
}
