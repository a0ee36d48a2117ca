"""Running the text of a `%%compile` cell as Python runs it, and finding out what is to be compiled.

The cell is parsed, executed and cached under its own number, so that tracebacks, carets and
`inspect.getsource` show the user's lines; functions it defines become compiled functions of the
notebook.  A cell that fails leaves the notebook's names as they were.  Knows IPython's compiler; it
must not know how results are shown.
"""

from __future__ import annotations

import ast
import inspect
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FunctionType, TracebackType
from typing import Any

import numpy as np
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell

import nbcomp
from nbcomp.errors import Unsupported
from nbcomp.frontend.result import bind
from nbcomp.types import TensorType

PACKAGE = str(Path(__file__).parents[1])
SEED = 0  # of inputs made up from annotations

Namespace = dict[str, Any]


@dataclass
class Call:
    """A call of a compiled function.

    Once it was made: `value` is what it returned, `compiled` what ran, or else `refused` says why
    it ran in NumPy.
    """

    function: Any
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    value: Any = None
    compiled: Any = None
    refused: Unsupported | None = None

    def make(self) -> Any:
        """Make the call."""
        __tracebackhide__ = True
        with warnings.catch_warnings():
            # The report says it, at the user's line.
            warnings.simplefilter("ignore", nbcomp.NumpyFallback)
            self.value = self.function(*self.args, **self.kwargs)
        self.compiled = self._variant()
        if self.compiled is None:
            self.refused = self.function.fallbacks[-1]
        return self.value

    def _variant(self) -> Any:
        """The variant of the function that takes such arguments; None when there is none."""
        for variant in reversed(self.function.variants):
            values = bind(variant.capture.signature, self.args, self.kwargs)
            if variant.mismatch(values) is None:
                return variant
        return None


@dataclass
class _Recorder:
    """Stands for a compiled function in the cell's last line, and notes the first call of any of
    them.
    """

    function: Any
    calls: list[Call]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        call = Call(self.function, args, kwargs)
        self.calls.append(call)
        return call.make()


def is_compiled(value: object) -> bool:
    """Whether a value is what `nbcomp.jit` returns."""
    return callable(value) and hasattr(value, "__wrapped__") and hasattr(value, "compiled")


# --------------------------------------------------------------------------------------- errors


@contextmanager
def restored_on_error(namespace: Namespace) -> Iterator[None]:
    """Give every name its old value when the body raises."""
    before = dict(namespace)
    try:
        yield
    except BaseException:
        for name in namespace.keys() - before.keys():
            del namespace[name]
        namespace.update(before)
        raise


class UsersFrames:
    """Takes the compiler's own frames out of the traceback of an error, unless `debug`."""

    def __init__(self, debug: bool) -> None:
        self.debug = debug

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        __tracebackhide__ = True
        if isinstance(error, Exception) and not self.debug:
            # A syntax error points at its line by itself.
            kept = None if isinstance(error, SyntaxError) else _without_ours(error.__traceback__)
            raise error.with_traceback(kept)


def _without_ours(traceback: TracebackType | None) -> TracebackType | None:
    kept = []
    while traceback is not None:
        if not traceback.tb_frame.f_code.co_filename.startswith(PACKAGE):
            kept.append(traceback)
        traceback = traceback.tb_next
    trimmed: TracebackType | None = None
    for t in reversed(kept):
        trimmed = TracebackType(trimmed, t.tb_frame, t.tb_lasti, t.tb_lineno)
    return trimmed


# ---------------------------------------------------------------------------------------- cells


def run_cell(shell: InteractiveShell, text: str, inputs: str = "") -> tuple[Call, Any]:
    """Execute a cell; returns the call to look at and the value of the cell.

    The call is the first one of a compiled function in the last statement.  When there is none, the
    last function the cell defines is called with `inputs` (expressions, separated by commas),
    inputs made from its annotations, or variables of the notebook with the names of its parameters.
    """
    __tracebackhide__ = True
    namespace = shell.user_ns
    raw, body = (
        "\n" + text,
        "\n" + shell.transform_cell(text),
    )  # line 1 is that of the command itself
    name = shell.compile.cache(body, _cell_number(shell), raw_code=raw)
    tree = shell.compile.ast_parse(body, name)
    assert isinstance(tree, ast.Module)
    last = tree.body.pop() if tree.body and _calls(tree.body[-1]) else None
    exec(_code(shell, tree, name, "exec"), namespace)
    defined = compile_definitions(namespace, name)
    value: Any = None
    calls: list[Call] = []
    if last is not None:
        value, calls = _run_last(shell, last, name, namespace)
    if calls:
        return calls[0], value
    if not defined:
        raise UsageError("nothing to compile: the cell neither defines nor calls a function")
    call = call_with_inputs(namespace[defined[-1]], namespace, inputs)
    result = call.make()
    return call, result if last is None else value


def _code(shell: InteractiveShell, tree: ast.AST, name: str, mode: str) -> CodeType:
    """The code of a tree, with the `__future__` features the notebook has switched on."""
    compiler: Any = shell.compile
    code: CodeType = compiler(tree, name, mode)
    return code


def _cell_number(shell: InteractiveShell) -> int:
    """The number of the running cell; `execution_count` may already be that of the next one."""
    history = shell.history_manager
    return len(history.input_hist_parsed) - 1 if history else shell.execution_count


def _calls(statement: ast.stmt) -> bool:
    """Whether a statement may hold the call that gives the inputs: not a definition, and with a
    call.
    """
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
        return False
    return any(isinstance(n, ast.Call) for n in ast.walk(statement))


def compile_definitions(namespace: Namespace, filename: str) -> list[str]:
    """Replace each function that was defined in this cell by its compiled form; their names, in
    order.
    """
    own = [
        (value.__code__.co_firstlineno, name)
        for name, value in namespace.items()
        if isinstance(value, FunctionType)
        and value.__code__.co_filename == filename
        and not (inspect.isgeneratorfunction(value) or inspect.iscoroutinefunction(value))
    ]
    for _, name in own:
        namespace[name] = nbcomp.jit(namespace[name])
    return [name for _, name in sorted(own)]


class _Redirect(ast.NodeTransformer):
    """Sends calls of compiled functions, and of objects of the notebook's classes, to recorders."""

    def __init__(self, namespace: Namespace, calls: list[Call]) -> None:
        self.namespace, self.calls = namespace, calls
        self.recorders: dict[str, _Recorder] = {}

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        callee = node.func.id if isinstance(node.func, ast.Name) else ""
        function = self.namespace.get(callee)
        if is_compiled(function) or _is_model(function):
            target = function if is_compiled(function) else nbcomp.jit(function)
            stand_in = f"_nbcomp_{callee}"
            self.recorders[stand_in] = _Recorder(target, self.calls)
            node.func = ast.copy_location(ast.Name(stand_in, ast.Load()), node.func)
        return node


def _is_model(value: object) -> bool:
    """Whether a value is a callable object of a class of the notebook's own."""
    return type(value).__module__ == "__main__" and callable(value)


def _run_last(
    shell: InteractiveShell, last: ast.stmt, name: str, namespace: Namespace
) -> tuple[Any, list[Call]]:
    """Execute the last statement with compiled functions recorded; its value if it is an
    expression.
    """
    __tracebackhide__ = True
    calls: list[Call] = []
    redirect = _Redirect(namespace, calls)
    redirect.visit(last)
    namespace.update(redirect.recorders)
    try:
        if isinstance(last, ast.Expr):
            return eval(_code(shell, ast.Expression(last.value), name, "eval"), namespace), calls
        exec(_code(shell, ast.Module([last], []), name, "exec"), namespace)
        return None, calls
    finally:
        for stand_in in redirect.recorders:
            namespace.pop(stand_in, None)


def call_of(shell: InteractiveShell, expression: str, inputs: str = "") -> Call:
    """The call that an expression like `f(x, y)`, or the name of a function, stands for, executed.

    A plain function is compiled for it; its name keeps its meaning.
    """
    __tracebackhide__ = True
    namespace = shell.user_ns
    node = ast.parse(expression.strip(), "<call>", "eval").body

    def value_of(part: ast.expr) -> Any:
        return eval(compile(ast.Expression(part), "<call>", "eval"), namespace)

    if isinstance(node, ast.Call):
        function = _compiled(value_of(node.func))
        # `collect(…)` evaluates the arguments exactly as the call itself would.
        collect = ast.Call(ast.Name("_nbcomp_collect", ast.Load()), node.args, node.keywords)
        namespace["_nbcomp_collect"] = lambda *args, **kwargs: Call(function, args, kwargs)
        try:
            call: Call = value_of(ast.fix_missing_locations(ast.copy_location(collect, node)))
        finally:
            del namespace["_nbcomp_collect"]
    elif isinstance(node, (ast.Name, ast.Attribute)):
        call = call_with_inputs(_compiled(value_of(node)), namespace, inputs)
    else:
        raise UsageError(f"expected a call such as f(x), not {expression!r}")
    call.make()
    return call


def _compiled(value: Any) -> Any:
    if not callable(value):
        raise UsageError(f"expected a function, not a {type(value).__name__}")
    return value if is_compiled(value) else nbcomp.jit(value)


def _named(namespace: Namespace, name: str) -> Any:
    if name not in namespace:
        raise UsageError(f"name {name!r} is not defined")
    return namespace[name]


def function_named(shell: InteractiveShell, name: str) -> Any:
    """The compiled function of that name; UsageError says what is missing."""
    function = _named(shell.user_ns, name)
    if not is_compiled(function):
        raise UsageError(f"{name} is not a compiled function: define it in a %%compile cell")
    if function.compiled is None:
        raise UsageError(f"{name} has not been compiled yet: call it once")
    return function


# --------------------------------------------------------------------------------------- inputs


def call_with_inputs(function: Any, namespace: Namespace, inputs: str) -> Call:
    """Find arguments for a function that is not called in the cell."""
    if inputs:
        return Call(function, eval(f"({inputs},)", namespace))
    plain: Callable[..., Any] = function.__wrapped__
    try:
        signature = inspect.signature(plain, eval_str=True)
    except NameError:
        signature = inspect.signature(plain)
    rng = np.random.default_rng(SEED)
    args, kwargs = [], {}
    for parameter in signature.parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        found = _input(parameter, namespace, rng)
        if found is inspect.Parameter.empty:
            raise UsageError(
                f"no input for {parameter.name!r} of {plain.__name__}: call it in the cell's last "
                f"line, give --inputs, annotate it ({parameter.name}: nbcomp.f32[8, 64]) or "
                f"define a variable {parameter.name!r}"
            )
        if parameter.kind is parameter.KEYWORD_ONLY:
            kwargs[parameter.name] = found
        else:
            args.append(found)
    return Call(function, tuple(args), kwargs)


def _input(parameter: inspect.Parameter, namespace: Namespace, rng: np.random.Generator) -> Any:
    if isinstance(parameter.annotation, TensorType):
        return random_array(parameter.annotation, rng)
    return namespace.get(parameter.name, parameter.default)


def random_array(t: TensorType, rng: np.random.Generator) -> Any:
    """An array of a type: floats from a standard normal, integers 0 to 9, booleans evenly."""
    if t.dtype.kind == "f":
        return rng.standard_normal(t.shape).astype(t.dtype)
    return rng.integers(0, 2 if t.dtype.kind == "b" else 10, t.shape).astype(t.dtype)
