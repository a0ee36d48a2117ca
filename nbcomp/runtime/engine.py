"""From LLVM text or an object file to callable addresses in this process.

The thinnest layer over llvmlite's MCJIT: no passes, for text that comes optimised; and the code
lives as long as its `Code` object.  llvmlite is imported on first use.  Knows nothing of plans.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nbcomp.errors import NbcompError


class Code:
    """Machine code in memory: `addresses` by name.  Keep it as long as they are in use."""

    def __init__(self, engine: Any, addresses: dict[str, int]) -> None:
        self._engine, self.addresses = engine, addresses

    def __getitem__(self, name: str) -> int:
        return self.addresses[name]


def target_machine(level: int = 2, cpu: str = "", features: str = "") -> Any:
    """The host's machine (its own CPU and features unless given) with code generation at -O`level`.

    An engine takes possession of its machine: make a new one (about 1 ms) for every `load`.
    """
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    return target.create_target_machine(
        cpu=cpu or llvm.get_host_cpu_name(),
        features=features or llvm.get_host_cpu_features().flatten(),
        opt=level,
        jit=True,
    )


def load(source: str | bytes, names: Sequence[str], machine: Any = None) -> Code:
    """Machine code for LLVM text (or a relocatable object), with the addresses of `names`.

    Raises NbcompError when LLVM rejects the text (a fault in nbcomp) or a name is missing.
    """
    import llvmlite.binding as llvm

    machine = machine or target_machine()
    try:
        context = llvm.create_context()
        module = llvm.parse_assembly(source if isinstance(source, str) else "", context)
        engine = llvm.create_mcjit_compiler(module, machine)
        if isinstance(source, bytes):
            engine.add_object_file(llvm.ObjectFileRef.from_data(source))
        engine.finalize_object()
    except RuntimeError as error:
        raise NbcompError(f"LLVM rejected generated code: {error}") from error
    addresses = {name: engine.get_global_value_address(name) for name in names}
    addresses = {name: at or engine.get_function_address(name) for name, at in addresses.items()}
    missing = [name for name, at in addresses.items() if not at]
    if missing:
        raise NbcompError(f"generated code lacks {', '.join(missing)}")
    return Code(engine, addresses)
