"""The child process of `remarks`: compiles texts with all of LLVM's remarks on.

Standard input is a JSON list of (LLVM IR, the fields of its `Cpu`); LLVM writes to standard error.
"""

from __future__ import annotations

import json
import sys

import llvmlite.binding as llvm

from nbcomp.target.llvm.cpus import every_architecture
from nbcomp.target.llvm.emit import Cpu, made_here
from nbcomp.target.llvm.remarks import MARK

OPTIONS = ("-pass-remarks=.*", "-pass-remarks-missed=.*", "-pass-remarks-analysis=.*")


def main() -> None:
    """Compile what standard input says."""
    for option in OPTIONS:
        llvm.set_option("nbcomp", option)
    every_architecture()
    for text, cpu in json.load(sys.stdin):
        sys.stderr.write(f"{MARK}\n")
        sys.stderr.flush()
        made_here(text, Cpu(*cpu))


if __name__ == "__main__":
    main()
