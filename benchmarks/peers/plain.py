"""Contestants that take NumPy arrays as they are: NumPy itself, nbcomp, Numba and numexpr."""

from __future__ import annotations

import ast
import inspect
import re
import warnings
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks import machine
from benchmarks.peers import Prepared, Refused, as_tuple
from benchmarks.workloads import Array, Function, Workload


def _outputs(result: Any) -> list[Array]:
    return [np.asarray(r) for r in as_tuple(result)]


def prepare_numpy(workload: Workload, arrays: dict[str, Array]) -> Prepared:
    """The function itself."""
    function, values = workload.function, tuple(arrays.values())
    return Prepared(lambda: function(*values), _outputs)


def prepare_nbcomp(workload: Workload, arrays: dict[str, Array]) -> Prepared:
    """The function through `nbcomp.jit`; falling back to NumPy counts as a failure."""
    nbcomp: Any = import_module("nbcomp")
    warnings.simplefilter("error", nbcomp.NumpyFallback)
    compiled: Any = nbcomp.jit(workload.function)
    values = tuple(arrays.values())
    return Prepared(lambda: compiled(*values), _outputs)


def prepare_numba(workload: Workload, arrays: dict[str, Array]) -> Prepared:
    """`njit(parallel=True)` on the same source; strict floating point, as NumPy's."""
    function = workload.function
    if all(a.dtype == np.float32 for a in arrays.values()):
        function = single_precision(function)
    compiled: Any = import_module("numba").njit(parallel=True)(function)
    values = tuple(arrays.values())
    return Prepared(lambda: compiled(*values), _outputs)


class _SinglePrecision(ast.NodeTransformer):
    """Literals in arithmetic, or as plain arguments of a call, become `np.float32(literal)`."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        node.left, node.right = _single(node.left), _single(node.right)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        node.args = [_single(a) for a in node.args]
        return node


def _single(node: ast.expr) -> ast.expr:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return ast.parse(f"np.float32({node.value!r})", mode="eval").body
    return node


def single_precision(function: Function) -> Function:
    """The same source with float32 literals: Numba widens arrays to a literal's float64."""
    tree = ast.parse(inspect.getsource(function))
    definition = tree.body[0]
    assert isinstance(definition, ast.FunctionDef)
    definition.decorator_list = []
    namespace = dict(function.__globals__)
    changed = ast.fix_missing_locations(_SinglePrecision().visit(tree))
    exec(compile(changed, "<single precision>", "exec"), namespace)
    made: Function = namespace[function.__name__]
    return made


def prepare_numexpr(workload: Workload, arrays: dict[str, Array]) -> Prepared:
    """One expression string per output; its numbers have the arrays' dtype, as in NumPy."""
    if not workload.numexpr:
        raise Refused("not an elementwise expression")
    numexpr = import_module("numexpr")
    numexpr.set_num_threads(machine.cores())
    single = all(a.dtype == np.float32 for a in arrays.values())
    dtype = np.float32 if single else np.float64
    names = dict(arrays)

    def constant(literal: re.Match[str]) -> str:
        name = f"c{literal[0].replace('.', '_')}"
        names[name] = np.asarray(literal[0], dtype)
        return name

    expressions = [re.sub(r"\d+\.\d+", constant, e) for e in workload.numexpr]

    def call() -> Any:
        return tuple(numexpr.evaluate(e, local_dict=names) for e in expressions)

    return Prepared(call, _outputs)
