"""Checkpoints: arrays by name, in safetensors and .npz files.

Nothing in a file is ever executed: pickles, PyTorch's own files among them, are refused.  Knows
files and arrays, not modules: `model.load_state_dict(checkpoint.load(path))`.
"""

from __future__ import annotations

import importlib
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from nbcomp.errors import NbcompError
from nbcomp.loop.bfloat16 import widen_array

Arrays = dict[str, np.ndarray[Any, Any]]

_PICKLES = (".pt", ".pth", ".bin", ".ckpt", ".pkl", ".pickle")


class CheckpointError(NbcompError, ValueError):
    """A file that is no checkpoint nbcomp reads; says what to do instead."""


def load(path: str | os.PathLike[str], *, widen: bool = False) -> Arrays:
    """The arrays of a .safetensors or .npz file, by name.

    widen: arrays of bfloat16, which NumPy has not, are read as float32, which has all its values.
    Raises CheckpointError for other files, for broken ones, for objects and other dtypes in them.
    """
    file = Path(path)
    if file.suffix == ".safetensors":
        return _safetensors(file, widen)
    if file.suffix == ".npz":
        return _npz(file)
    raise _refused(file)


def save(arrays: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Write arrays (of a `state_dict`, say) to a .safetensors or .npz file."""
    file = Path(path)
    plain = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    for name, array in plain.items():
        if array.dtype.hasobject:
            raise CheckpointError(f"{name} holds Python objects, which a checkpoint does not")
        plain[name] = array.reshape(np.shape(arrays[name]))  # 0-d arrays stay 0-d
    if file.suffix == ".safetensors":
        _library().save_file(plain, str(file))
    elif file.suffix == ".npz":
        with file.open("wb") as opened:
            np.savez(opened, **plain)  # type: ignore[arg-type]
    else:
        raise _refused(file)


def _npz(file: Path) -> Arrays:
    try:
        with np.load(file, allow_pickle=False) as opened:
            return {name: opened[name] for name in opened.files}
    except (ValueError, zipfile.BadZipFile, AttributeError, EOFError) as error:
        raise CheckpointError(f"{file.name} is no .npz file of plain arrays: {error}") from None


# What safetensors calls dtypes that NumPy has not, and what they are called elsewhere.
_FOREIGN = {
    "BF16": "bfloat16",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "F8_E8M0": "float8_e8m0fnu",
    "F4": "float4_e2m1fn_x2",
}


def _safetensors(file: Path, widen: bool) -> Arrays:
    if not file.exists():
        raise FileNotFoundError(f"there is no file {file}")
    library = _library()
    try:
        arrays: Arrays = library.load_file(str(file))
        return arrays
    except Exception as error:  # its own class, written in Rust, or of a dtype NumPy has not
        if isinstance(error, OSError):
            raise
        foreign = _foreign(library, file)
        if not foreign:
            raise CheckpointError(f"{file.name} is no safetensors file: {error}") from None
    name, kind = min(foreign.items(), key=lambda entry: entry[1] == "BF16")
    if kind == "BF16" and widen:
        return _widened(library, file)
    raise CheckpointError(
        f"{name} in {file.name} has dtype {_FOREIGN.get(kind, kind)}, which NumPy has not",
        hint="load(path, widen=True) reads it as float32"
        if kind == "BF16"
        else "convert it to float32 and save again",
    )


def _foreign(library: Any, file: Path) -> dict[str, str]:
    """The names and dtypes of arrays whose dtypes NumPy has not."""
    try:
        with library.safe_open(str(file), "np") as opened:
            kinds = {name: opened.get_slice(name).get_dtype() for name in opened.keys()}  # noqa: SIM118
    except Exception:  # broken: said elsewhere
        return {}
    return {name: kind for name, kind in kinds.items() if kind in _FOREIGN}


def _widened(library: Any, file: Path) -> Arrays:
    """All arrays, those of bfloat16 as float32."""
    arrays: Arrays = {}
    with library.safe_open(str(file), "np") as opened:
        plain = [n for n in opened.keys() if opened.get_slice(n).get_dtype() != "BF16"]  # noqa: SIM118
        arrays |= {name: opened.get_tensor(name) for name in plain}
    for name, entry in library.deserialize(file.read_bytes()):
        if entry["dtype"] == "BF16":
            bits = np.frombuffer(entry["data"], "<u2")
            arrays[name] = widen_array(bits).reshape(entry["shape"])
    return arrays


def _library() -> Any:
    try:
        return importlib.import_module("safetensors.numpy")
    except ImportError:
        raise CheckpointError(
            "reading and writing safetensors needs a package that is not installed",
            hint="pip install 'nbcomp[safetensors]', or use .npz files",
        ) from None


def _refused(file: Path) -> CheckpointError:
    if file.suffix in _PICKLES:
        return CheckpointError(
            f"{file.name}: files of this kind are pickles, which run code when they are read",
            hint="where they come from, write safetensors.torch.save_file(model.state_dict(), "
            f"{file.stem + '.safetensors'!r}) and load that",
        )
    return CheckpointError(f"{file.name}: a checkpoint is a .safetensors or a .npz file")
