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

Arrays = dict[str, np.ndarray[Any, Any]]

_PICKLES = (".pt", ".pth", ".bin", ".ckpt", ".pkl", ".pickle")


class CheckpointError(NbcompError, ValueError):
    """A file that is no checkpoint nbcomp reads; says what to do instead."""


def load(path: str | os.PathLike[str]) -> Arrays:
    """The arrays of a .safetensors or .npz file, by name.

    Raises CheckpointError for other files, for broken ones and for objects in them.
    """
    file = Path(path)
    if file.suffix == ".safetensors":
        return _safetensors(file)
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


def _safetensors(file: Path) -> Arrays:
    if not file.exists():
        raise FileNotFoundError(f"there is no file {file}")
    library = _library()
    try:
        arrays: Arrays = library.load_file(str(file))
    except KeyError as error:  # a dtype that NumPy has not
        raise CheckpointError(
            f"{file.name} holds arrays of dtype {error.args[0]}, which NumPy has not",
            hint="convert them to float32 and save again",
        ) from None
    except Exception as error:  # its own class, written in Rust
        if isinstance(error, OSError):
            raise
        raise CheckpointError(f"{file.name} is no safetensors file: {error}") from None
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
