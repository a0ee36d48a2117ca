"""`%cpus f(x)`: one source, many CPUs."""

from __future__ import annotations

from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments

from nbcomp.magics.cell import call_of
from nbcomp.magics.commands import parsed, unquoted
from nbcomp.magics.failing import UsersFrames
from nbcomp.magics.progress import Progress


@magics_class
class CpuMagics(Magics):
    """The command that compiles for other CPUs."""

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell)
        self.notebook = shell

    @magic_arguments()
    @argument("call", nargs="+", help="a call such as f(x, y)")
    @argument("--inputs", "-i", type=unquoted, default="", help='arguments, such as "x, y"')
    @argument("--seconds", type=float, default=5.0, help="about how long the timing may take")
    @line_magic
    def cpus(self, line: str) -> Any:
        """The function of a call for SSE2, AVX2, AVX-512, AMX, AArch64, RISC-V, WebAssembly, PTX.

        Those this machine can run are compared with NumPy and timed in turn.
        """
        from nbcomp.measure.cpus import compare_cpus  # brings the compiler: not when loaded

        __tracebackhide__ = True
        args = parsed(self.cpus, line)
        with UsersFrames(self.notebook), Progress(self.notebook) as progress:
            progress.say("compiling …")
            call = call_of(self.notebook, " ".join(args.call), args.inputs)
            call.find_compiled()
            if call.refused is not None:
                raise call.refused
            what = call.compiled, call.args, call.kwargs
            return compare_cpus(*what, seconds=args.seconds, say=progress.say)
