"""Running the text of a `%%compile` cell as Python runs it, and finding out what is to be compiled.

The cell is parsed, executed and cached under its own number, so that tracebacks, carets and
`inspect.getsource` show the user's lines; functions it defines become compiled functions of the
notebook.  Knows IPython's compiler; it must not know how results are shown.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from types import BuiltinFunctionType, CodeType, FunctionType
from typing import Any

import numpy as np
from IPython.core.displayhook import DisplayHook
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell

import nbcomp
from nbcomp.errors import an
from nbcomp.magics.inputs import Namespace, NoInput, call_with_inputs
from nbcomp.magics.recording import Call, Recording, in_parts, is_compiled
from nbcomp.measure.arguments import twin

Way = Callable[[Any], Any]  # how functions are compiled: `nbcomp.jit`, perhaps with options


@dataclass
class Outcome:
    """What a cell did: its value, the calls to report, and else a note in place of a report."""

    value: Any = None
    calls: list[Call] = field(default_factory=list)
    note: str = ""


# ---------------------------------------------------------------------------------------- cells


def run_cell(
    shell: InteractiveShell, text: str, inputs: str = "", way: Way | None = None
) -> Outcome:
    """Execute a cell as Python does, the functions it defines compiled (`way`: by `nbcomp.jit`).

    The calls to report are those its last statement makes, or the last statement that makes any.
    Only when the cell holds nothing but definitions, the last function it defines is called: with
    `inputs` (expressions, separated by commas), inputs made from its annotations, or copies of
    variables of the notebook with the names of its parameters; where there are none, a note says
    so.
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
    if inputs and not all(map(_defines, tree.body)):
        raise UsageError(
            "--inputs is for a cell of definitions only: this one has statements of its own, and "
            "its calls give the inputs"
        )
    defined: list[str] = []
    with Recording() as recording:
        value = _run(shell, tree, name, recording, defined, way)
    defined = list(dict.fromkeys(n for n in defined if is_compiled(namespace.get(n))))
    if recording.calls:
        return Outcome(value, recording.calls)
    if not all(map(_defines, tree.body)) and defined:
        names = " and ".join(defined)
        return Outcome(value, note=f"{names}: compiled when called; the cell made no call")
    if not defined:
        if inspect.iscoroutine(value):
            value.close()  # nobody awaits it: Python would warn of that
        raise UsageError(_nothing(namespace, name))
    try:
        call = call_with_inputs(namespace[defined[-1]], namespace, inputs)
    except NoInput as missing:
        names = " and ".join(defined)
        how = "call it in the cell's last line"
        return Outcome(value, note=f"{names}: compiled when called; there is {missing.words(how)}")
    call.args, call.kwargs = twin((call.args, call.kwargs))
    return Outcome(call.make(), [call])


def _defines(statement: ast.stmt) -> bool:
    """Whether a statement is a definition, an import, a docstring or nothing."""
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
    return isinstance(statement, (*kinds, ast.Pass))


def _run(
    shell: InteractiveShell,
    tree: ast.Module,
    name: str,
    recording: Recording,
    defined: list[str],
    way: Way | None = None,
) -> Any:
    """Execute the statements one by one; the value of the last one if it is an expression."""
    __tracebackhide__ = True
    namespace = shell.user_ns
    for known in list(namespace.values()):
        if is_compiled(known):
            recording.watch(known)
    value: Any = None
    for statement in tree.body:
        recording.begin()
        if statement is tree.body[-1] and not _defines(statement):
            value = _run_last(shell, statement, name, recording, way)
        else:
            exec(_code(shell, ast.Module([statement], []), name, "exec"), namespace)
        compile_definitions(namespace, name, way)
        for new in _compiled_here(namespace, name):
            if new in defined:
                continue
            defined.append(new)
            recording.watch(namespace[new])
    return value


def _compiled_here(namespace: Namespace, filename: str) -> list[str]:
    """The names of compiled functions of this cell, decorated by the user or by us, in order."""
    found = []
    for name, value in namespace.items():
        code = getattr(value.__wrapped__, "__code__", None) if is_compiled(value) else None
        if code is not None and code.co_filename == filename:
            found.append((code.co_firstlineno, name))
    return [name for _, name in sorted(found)]


def _nothing(namespace: Namespace, filename: str) -> str:
    """Why a cell has nothing to compile."""
    for value in namespace.values():
        if isinstance(value, FunctionType) and value.__code__.co_filename == filename:
            return why_not(value)
    return (
        "nothing to compile: the cell neither defines a plain function nor calls a compiled one;"
        " classes and what other decorators make are left as they are (nbcomp.jit compiles a method"
        " or a class)"
    )


def why_not(function: Any) -> str:
    """Why a function cannot be compiled at all, empty when it may be."""
    kinds = (
        (inspect.isgeneratorfunction, "generator"),
        (inspect.iscoroutinefunction, "coroutine"),
        (inspect.isasyncgenfunction, "asynchronous generator"),
    )
    for is_kind, kind in kinds:
        if is_kind(function):
            return (
                f"{function.__name__} is {an(kind)}: it cannot be compiled, because it runs in "
                "pieces and other code runs between them; compile the functions it calls"
            )
    return ""


def _code(shell: InteractiveShell, tree: ast.AST, name: str, mode: str) -> CodeType:
    """The code of a tree, with the `__future__` features the notebook has switched on."""
    compiler: Any = shell.compile
    code: CodeType = compiler(tree, name, mode)
    return code


def _cell_number(shell: InteractiveShell) -> int:
    """The number of the running cell; `execution_count` may already be that of the next one."""
    history = shell.history_manager
    return len(history.input_hist_parsed) - 1 if history else shell.execution_count


def compile_definitions(namespace: Namespace, filename: str, way: Way | None = None) -> list[str]:
    """Replace each function that was defined in this cell by its compiled form; their names, in
    order.  way: what compiles, `nbcomp.jit` unless another is given.
    """
    own = [
        (value.__code__.co_firstlineno, name)
        for name, value in namespace.items()
        if isinstance(value, FunctionType)
        and value.__code__.co_filename == filename
        and not why_not(value)
    ]
    for _, name in own:
        namespace[name] = (way or nbcomp.jit)(namespace[name])
    return [name for _, name in sorted(own)]


class _Redirect(ast.NodeTransformer):
    """Sends calls of objects of the notebook's classes, of their methods and of functions that keep
    their results (`lru_cache`) through their compiled form, noted."""

    def __init__(self, namespace: Namespace, recording: Recording, way: Way | None = None) -> None:
        self.namespace, self.recording, self.way = namespace, recording, way or nbcomp.jit
        self.recorders: Namespace = {}

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        found = self.called(node.func)
        if found is not None:
            stand_in = f"_nbcomp_{ast.unparse(node.func).replace('.', '_')}"
            self.recorders[stand_in] = self.recording.recorder(self.way(found))
            node.func = ast.copy_location(ast.Name(stand_in, ast.Load()), node.func)
        return node

    def called(self, node: ast.expr) -> Any:
        """What a call in the cell is to be compiled for, if it is not compiled yet; else None."""
        match node:
            case ast.Name(name):
                value = self.namespace.get(name)
                return value if _is_model(value) else _behind_a_cache(value)
            case ast.Attribute(ast.Name(owner), method):
                return _method(self.namespace.get(owner), method)
        return None


def _behind_a_cache(value: Any) -> Any:
    """The notebook's function behind `functools.cache` or `lru_cache`; None for all else."""
    inner = getattr(value, "__wrapped__", None) if hasattr(value, "cache_info") else None
    own = isinstance(inner, FunctionType) and inner.__module__ == "__main__"
    return inner if own and not why_not(inner) else None


def _method(owner: object, name: str) -> Any:
    """A method of an object of the notebook's classes, bound to it; None for all else."""
    kept = inspect.getattr_static(owner, name, None)
    own = type(owner).__module__ == "__main__" and isinstance(kept, FunctionType)
    return getattr(owner, name) if own and not why_not(kept) else None


def _is_model(value: object) -> bool:
    """Whether a value is a module, or a callable object of a class of the notebook's own."""
    # There are no modules where their package was not imported, which brings the whole compiler.
    module = sys.modules.get("nbcomp.nn.module")
    own = type(value).__module__ == "__main__"
    return callable(value) and (own or (module is not None and isinstance(value, module.Module)))


def _run_last(
    shell: InteractiveShell, last: ast.stmt, name: str, recording: Recording, way: Way | None
) -> Any:
    """Execute the last statement; its value if it is an expression."""
    __tracebackhide__ = True
    namespace = shell.user_ns
    redirect = _Redirect(namespace, recording, way)
    redirect.visit(last)
    namespace.update(redirect.recorders)
    try:
        if isinstance(last, ast.Expr):
            return eval(_code(shell, ast.Expression(last.value), name, "eval"), namespace)
        exec(_code(shell, ast.Module([last], []), name, "exec"), namespace)
        return None
    finally:
        for stand_in in redirect.recorders:
            namespace.pop(stand_in, None)


def expression_of(text: str) -> ast.expr:
    """The expression on a command's line; a `;` behind it, as behind any in a cell, is none of it.

    Raises SyntaxError.
    """
    return ast.parse(text.strip().rstrip("; "), "<call>", "eval").body


def is_expression(text: str) -> bool:
    """Whether a text is an expression: what a command takes as the name or the call it is about."""
    try:
        expression_of(text)
    except SyntaxError:
        return False
    return True


def is_silenced(shell: InteractiveShell, text: str) -> bool:
    """Whether a cell ends in `;`, which keeps its value from being shown."""
    return bool(DisplayHook.semicolon_at_end_of_expression(shell.transform_cell(text)))


def call_of(
    shell: InteractiveShell,
    expression: str,
    inputs: str = "",
    keep: bool = False,
    way: Way | None = None,
) -> Call:
    """The call that an expression like `f(x, y)`, or the name of a function, stands for, executed.

    A plain function is compiled for it, and any function if there is a `way` to do so; with `keep`,
    its name stands for the compiled one then.  `Call.kept` says whether the notebook has it.
    """
    __tracebackhide__ = True
    namespace = shell.user_ns
    node = expression_of(expression)
    callee = node.func if isinstance(node, ast.Call) else node
    if isinstance(callee, ast.Name) and not hasattr(builtins, callee.id):
        _named(namespace, callee.id)

    # A traceback shows the line from there.
    name = shell.compile.cache(expression, _cell_number(shell), raw_code=expression)

    def value_of(part: ast.expr) -> Any:
        return eval(compile(ast.Expression(part), name, "eval"), namespace)

    if isinstance(node, ast.Call):
        function = _compiled(old := value_of(callee), way, _as_function(node, namespace))
        # `collect(…)` evaluates the arguments exactly as the call itself would.
        collect = ast.Call(ast.Name("_nbcomp_collect", ast.Load()), node.args, node.keywords)
        namespace["_nbcomp_collect"] = lambda *args, **kwargs: Call(function, args, kwargs)
        try:
            call: Call = value_of(ast.fix_missing_locations(ast.copy_location(collect, node)))
        finally:
            del namespace["_nbcomp_collect"]
    elif isinstance(node, (ast.Name, ast.Attribute)):
        try:
            function = _compiled(old := value_of(callee), way)
            call = call_with_inputs(function, namespace, inputs)
        except NoInput as missing:
            raise UsageError(missing.words(f"write a call, such as {expression}(…)")) from None
    else:
        raise UsageError(f"expected a call such as f(x), not {expression!r}")
    call.make()
    call.kept = function is old
    if keep and isinstance(callee, ast.Name):
        plain = old.__wrapped__ if way is not None and is_compiled(old) else old
        if isinstance(plain, FunctionType) and function.__wrapped__ is plain:
            namespace[callee.id], call.kept = function, True
    return call


def _as_function(call: ast.Call, namespace: Namespace) -> str:
    """A call as a function of the arrays in it that could be compiled."""
    names = (n.id for n in ast.walk(call) if isinstance(n, ast.Name))
    arrays = [n for n in names if isinstance(namespace.get(n), np.ndarray | np.generic)]
    return f"def f({', '.join(dict.fromkeys(arrays))}): return {ast.unparse(call)}"


def _compiled(value: Any, way: Way | None = None, written: str = "") -> Any:
    """The compiled form of what is called; written: how the call would be one of Python."""
    if not callable(value):
        raise UsageError(f"expected a function, not {an(type(value).__name__)}")
    if isinstance(value, np.ufunc | BuiltinFunctionType):
        example = f", such as {written}" if written else ""
        raise UsageError(
            f"{value.__name__} is not written in Python: define a function that calls it{example}"
        )
    if why := why_not(value):
        raise UsageError(why)
    return value if is_compiled(value) and way is None else (way or nbcomp.jit)(value)


def _named(namespace: Namespace, name: str) -> Any:
    if name not in namespace:
        raise UsageError(f"name {name!r} is not defined")
    return namespace[name]


def function_named(shell: InteractiveShell, text: str) -> tuple[Any, Any]:
    """The function that a name or a call stands for, compiled or refused, and what it compiled to:
    for that call, which is made, or for its newest one; None where Python runs all or parts of it.

    UsageError says what is missing.
    """
    try:
        node = expression_of(text)
    except SyntaxError:
        raise UsageError(f"expected a function's name or a call of it, not {text!r}") from None
    if isinstance(node, ast.Call) and not _is_numpys(_resolved(shell.user_ns, node.func)):
        call = call_of(shell, text, keep=True)
        call.find_compiled()
        return call.function, call.compiled
    node = node.func if isinstance(node, ast.Call) else node
    name, function = ast.unparse(node), _resolved(shell.user_ns, node)
    if not is_compiled(function):
        raise UsageError(_why_not_compiled(name, function))
    if function.compiled is None and not function.fallbacks and not function.breaks:
        raise UsageError(f"{name} has not been compiled yet: call it once")
    return function, function.compiled


def _resolved(namespace: Namespace, node: ast.expr) -> Any:
    """What a name of the notebook, dotted or not, stands for."""
    match node:
        case ast.Name(name):
            return getattr(builtins, name) if hasattr(builtins, name) else _named(namespace, name)
        case ast.Attribute(owner, attribute):
            try:
                return getattr(_resolved(namespace, owner), attribute)
            except AttributeError as error:
                raise UsageError(str(error)) from None
    raise UsageError(f"expected a function's name or a call of it, not {ast.unparse(node)!r}")


def _is_numpys(function: Any) -> bool:
    """Whether a function is NumPy's, or any other that is not written in Python."""
    module = str(getattr(function, "__module__", "") or "")
    written = isinstance(function, np.ufunc | BuiltinFunctionType)
    return callable(function) and (written or module.partition(".")[0] == "numpy")


def _why_not_compiled(name: str, function: Any) -> str:
    if _is_numpys(function):
        return (
            f"{name} is not a function of the notebook: what becomes of it is said of the compiled "
            f"functions that call it"
        )
    if _is_model(function):
        return (
            f"{name} is an object, whose calls are compiled: name one, such as %explain {name}(…)"
        )
    return (
        why_not(function)
        or f"{name} is not a compiled function: define it in a %%compile cell, or call it with "
        f"%compile {name}(…)"
    )


def compiled_named(shell: InteractiveShell, text: str) -> Any:
    """What a function, by its name or a call, compiled to as `function_named` finds it; UsageError
    says why there is none."""
    function, compiled = function_named(shell, text)
    name = function.__name__
    if compiled is None and function.breaks:
        raise UsageError(f"{name} is not one graph: {in_parts(function).message}")
    if compiled is None:
        reason = function.fallbacks[-1]
        where = f" ({reason.location})" if reason.location else ""
        hint = f"; {reason.hint}" if reason.hint else ""
        raise UsageError(f"{name} runs in NumPy: {reason.message}{where}{hint}")
    return compiled
