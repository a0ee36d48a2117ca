"""The shape of the code: no import cycles, no hidden imports, cheap to import, all explained.

The layers themselves are import-linter's (`[tool.importlinter]` in pyproject.toml), run here too.
"""

from __future__ import annotations

import ast
import graphlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "nbcomp"
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
}

# Imports inside functions, by name: (module, function) -> what.  There are three reasons: what it
# brings is heavy and often not needed; a printer imports the grammar it prints; the operators'
# base and the graph they make nodes of are two halves of one thing.
LATE = {
    ("nbcomp", "load_ipython_extension"): {"nbcomp.magics"},
    ("nbcomp", "unload_ipython_extension"): {"nbcomp.magics"},
    ("nbcomp.compiled", "report"): {"nbcomp.display.bundle"},
    ("nbcomp.display.plots.plot", "picture"): {"matplotlib", "matplotlib.figure"},
    ("nbcomp.graph.editable", "__str__"): {"nbcomp.graph.table"},
    ("nbcomp.graph.editable", "print_tabular"): {"nbcomp.graph.table"},
    ("nbcomp.graph.editable", "to_networkx"): {"nbcomp.graph.table"},
    ("nbcomp.graph.ir", "__str__"): {"nbcomp.graph.printer"},
    ("nbcomp.graph.ir", "print_tabular"): {"nbcomp.graph.editable"},
    ("nbcomp.graph.ir", "to_networkx"): {"nbcomp.graph.editable"},
    ("nbcomp.graph.op", "_expanded_type"): {"nbcomp.graph.ir"},
    ("nbcomp.graph.op", ""): {"nbcomp.graph.ir"},  # for the type checker
    ("nbcomp.graph.passes.groups", "__str__"): {"nbcomp.graph.printer"},
    ("nbcomp.magics", "show_tuned"): {"nbcomp.display.tuning"},
    ("nbcomp.magics.cpus", "cpus"): {"nbcomp.measure.cpus"},
    ("nbcomp.magics.marks", "_comm"): {"comm"},
    ("nbcomp.magics.measuring", "on_cpus"): {"nbcomp.measure.cpus"},
    ("nbcomp.magics.schedules", "schedule"): {
        "nbcomp.display.trial",
        "nbcomp.measure.schedules",
        "nbcomp.schedule.canonical",
        "nbcomp.schedule.language",
    },
    ("nbcomp.magics.searching", "tuned"): {
        "nbcomp.display.tuning",
        "nbcomp.tuning.tune",
        "nbcomp.tuning.tuner",
    },
    ("nbcomp.magics.searching", "tuned_if_any"): {"nbcomp.tuning.tuner"},
    ("nbcomp.magics.settings", "_use_record"): {"nbcomp.schedule.database"},
    ("nbcomp.magics.tuning", "exchange"): {"nbcomp.schedule.database", "nbcomp.tuning.tune"},
    ("nbcomp.magics.measuring", "_operators"): {"nbcomp.frontend.trace"},
    ("nbcomp.magics.measuring", "measure"): {
        "nbcomp.measure.ablation",
        "nbcomp.measure.kernels",
        "nbcomp.measure.passes",
    },
    ("nbcomp.magics.checking", "_levels_of"): {"nbcomp.levels"},
    ("nbcomp.loop.grammar", "__str__"): {"nbcomp.loop.printer"},
    ("nbcomp.loop.interpreter", "function"): {"scipy.special"},
    ("nbcomp.ops.elementary", "reference"): {"scipy.special"},
    ("nbcomp.runtime.engine", "target_machine"): {"llvmlite.binding"},
    ("nbcomp.runtime.engine", "load"): {"llvmlite.binding"},
}

HEAVY = ("matplotlib", "IPython", "scipy", "networkx", "llvmlite", "numba", "jupyterlab")


def _names(node: ast.Import | ast.ImportFrom) -> set[str]:
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names}
    assert node.level == 0, "imports are absolute"
    assert all(alias.name != "*" for alias in node.names), "no import of *"
    names = {f"{node.module}.{alias.name}" for alias in node.names}
    return {name if name in MODULES else node.module or "" for name in names}


def _imports(tree: ast.AST, function: str = "") -> Iterator[tuple[str, bool, set[str]]]:
    """(enclosing function, at the top of the module, what) of every import statement."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield function, isinstance(tree, ast.Module), _names(node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _imports(node, function or node.name)
        else:
            yield from _imports(node, function)


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def test_no_import_cycles() -> None:
    graph = {
        module: {
            name
            for _, top, names in _imports(_tree(path))
            if top
            for name in names & MODULES.keys()
            if name != module
        }
        for module, path in MODULES.items()
    }
    list(graphlib.TopologicalSorter(graph).static_order())  # raises CycleError with the cycle


@pytest.mark.parametrize("module", MODULES)
def test_imports_stand_at_the_top(module: str) -> None:
    late: dict[tuple[str, str], set[str]] = {}
    for function, top, names in _imports(_tree(MODULES[module])):
        if not top:
            late.setdefault((module, function), set()).update(names)
    assert late == {key: names for key, names in LATE.items() if key[0] == module}


@pytest.mark.parametrize("module", MODULES)
def test_every_module_says_what_it_is(module: str) -> None:
    tree = _tree(MODULES[module])
    assert not tree.body or ast.get_docstring(tree)


def test_no_drawers_for_odds_and_ends() -> None:
    names = {"util", "utils", "helper", "helpers", "common", "misc"}
    assert not [module for module in MODULES if module.rpartition(".")[2] in names]


def test_layers() -> None:
    command = "from importlinter.cli import lint_imports; raise SystemExit(lint_imports())"
    done = subprocess.run(
        [sys.executable, "-c", command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_importing_nbcomp_is_cheap() -> None:
    command = f"import nbcomp, sys; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", command], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_loading_the_extension_imports_no_plotting_library() -> None:
    command = (
        "import sys; from IPython.core.interactiveshell import InteractiveShell\n"
        "InteractiveShell.instance().run_line_magic('load_ext', 'nbcomp')\n"
        "print('matplotlib' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", command], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
