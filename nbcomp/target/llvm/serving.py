"""The child process of `apart`: LLVM IR and a CPU in, what LLVM makes of it out; a line each."""

from __future__ import annotations

import json
import sys

from nbcomp.target.llvm.cpus import every_architecture
from nbcomp.target.llvm.emit import Cpu, made_here


def main() -> None:
    """Answer until there are no more requests."""
    every_architecture()
    for line in sys.stdin:
        text, cpu = json.loads(line)
        sys.stdout.write(json.dumps(made_here(text, Cpu(*cpu))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
