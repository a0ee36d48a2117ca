"""nbcomp: an AI compiler in a notebook.  `%load_ext nbcomp`, then `%%compile`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from nbcomp.version import VERSION

__version__ = VERSION

# Names are imported when they are used, so that `import nbcomp` costs next to nothing.
_PUBLIC = {
    "jit": "nbcomp.jitted",
    "script": "nbcomp.scripted",
    "compile": "nbcomp.pipeline",
    "compile_for": "nbcomp.pipeline",
    "cpus": "nbcomp.measure.cpus",
    "NumpyFallback": "nbcomp.jitted",
    "RecompileLimit": "nbcomp.parts",
    "Compiled": "nbcomp.compiled",
    **dict.fromkeys(["TraceWarning", "export", "trace"], "nbcomp.capturing"),
    "GraphModule": "nbcomp.graph_module",
    "replace_pattern": "nbcomp.patterns",
    "Library": "nbcomp.dispatch",
    "Interpreter": "nbcomp.graph.interpreter",
    "Transformer": "nbcomp.graph.interpreter",
    "op": "nbcomp.ops.by_name",
    "CaptureError": "nbcomp.errors",
    "NbcompError": "nbcomp.errors",
    "Unsupported": "nbcomp.errors",
    "Options": "nbcomp.options",
    "tune": "nbcomp.tuning.tune",
    "use_record": "nbcomp.schedule.database",
    "measure_passes": "nbcomp.measure.passes",
    "measure_numbers": "nbcomp.measure.kernels",
    "ablate": "nbcomp.measure.ablation",
    "set_threads": "nbcomp.runtime.pool",
    "threads": "nbcomp.runtime.pool",
    **dict.fromkeys(["sum", "topk"], "nbcomp.nn.functional"),
    **dict.fromkeys(
        ["f16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bool_"],
        "nbcomp.types",
    ),
}

_PACKAGES = ("checkpoint", "nn")

__all__ = sorted((*_PUBLIC, *_PACKAGES))


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"nbcomp.{name}")
    if name not in _PUBLIC:
        raise AttributeError(f"module 'nbcomp' has no attribute {name!r}")
    value = getattr(import_module(_PUBLIC[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _jupyter_labextension_paths() -> list[dict[str, str]]:
    """Where the front end is in a checkout, for `jupyter labextension develop`."""
    return [{"src": "labextension", "dest": "nbcomp-lab"}]


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext nbcomp`"""
    from nbcomp.magics import load

    load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """`%unload_ext nbcomp`"""
    from nbcomp.magics import unload

    unload(shell)
