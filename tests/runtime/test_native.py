"""The generated code itself, the layout check and the engine."""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
import pytest

from nbcomp.errors import NbcompError
from nbcomp.runtime import engine, entry, layout, memory, native, pool
from nbcomp.runtime.emit import Function, address, fill, struct
from nbcomp.runtime.entry import NativeFunction
from tests.runtime.kernels import add_plan


def test_this_interpreter_is_trusted() -> None:
    assert layout.trusted()
    assert native.library() is native.loaded() is not None


@pytest.mark.parametrize("name", sorted(layout.NUMPY))
def test_indices_into_numpys_table_are_those_of_its_header(name: str) -> None:
    header = (Path(np.get_include()) / "numpy" / "__multiarray_api.h").read_text()
    found = re.search(rf"#define {name}\b[^#]*?PyArray_API\[(\d+)\]", header)
    assert found is not None
    assert int(found[1]) == layout.NUMPY[name]


@pytest.mark.parametrize("part", [0, 1], ids=["entry", "rest"])
@pytest.mark.parametrize("triple", ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"])
def test_the_text_is_valid_and_compiles_elsewhere(part: int, triple: str) -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    text = native.texts()[part]
    if triple.startswith("aarch64"):
        text = text.replace("@llvm.x86.sse2.pause()", "@llvm.donothing()")
    module = llvm.parse_assembly(text, llvm.create_context())
    module.verify()
    machine = llvm.Target.from_triple(triple).create_target_machine(opt=1)
    assert len(machine.emit_object(module)) > 1000


def test_prefetch_compiles_in_the_background() -> None:
    program = (
        "from nbcomp.runtime import native; native.prefetch(); native.prefetch();"
        "assert native.library() is not None; native.prefetch()"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_importing_the_run_time_does_not_import_llvmlite() -> None:
    program = "import sys, nbcomp.runtime.entry; assert 'llvmlite' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_functions_work_without_native_code(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (entry, memory, pool):
        monkeypatch.setattr(module, "library", lambda: None)
    function = NativeFunction("f", "Doc.", lambda args, kwargs: "slow")
    function.add(add_plan(4))
    assert function.callable(np.ones(4), np.ones(4)).tolist() == [2] * 4
    assert function.callable(1) == "slow"
    assert (function.callable.__name__, function.callable.__doc__) == ("f", "Doc.")


def test_the_engine_loads_text_and_objects() -> None:
    text = "define i64 @twice(i64 %x) {\n  %y = mul i64 %x, 2\n  ret i64 %y\n}"
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
    code = engine.load(text, ["twice"])
    assert kind(code["twice"])(21) == 42
    module = llvm.parse_assembly(text, llvm.create_context())
    binary = engine.target_machine().emit_object(module)
    again = engine.load(binary, ["twice"])
    assert kind(again["twice"])(4) == 8


def test_the_engine_names_its_own_faults() -> None:
    with pytest.raises(NbcompError, match="LLVM rejected generated code"):
        engine.load("define nonsense", ["f"])
    with pytest.raises(NbcompError, match="lacks g"):
        engine.load("define void @f() {\n  ret void\n}", ["g"])


def test_structs_and_control_flow_of_the_emitter() -> None:
    point = struct(x="i4", y="i8")
    f = Function("total", "i64", points="ptr", count="i64")
    sum_ = f.local("i64", 0)
    with f.count(f["count"]) as i:
        item = f["points"].at(i * point.itemsize)
        with f.when(item.field(point, "x") > 0):
            sum_.set(sum_.get() + item.field(point, "y"))
    f.give(sum_.get())
    code = engine.load(f.text(), ["total"])
    block = fill(point, [{"x": 1, "y": 10}, {"x": -1, "y": 100}, {"x": 5, "y": 1}])
    total = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)(code["total"])
    assert total(address(block), 3) == 11
