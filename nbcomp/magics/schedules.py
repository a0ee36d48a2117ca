"""`%%schedule f(x) KERNEL`: a cell of schedule steps, played on a kernel of a compiled function."""

from __future__ import annotations

from typing import Any

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, cell_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments

from nbcomp.errors import ScheduleError
from nbcomp.magics.cell import call_of
from nbcomp.magics.commands import parsed, unquoted
from nbcomp.magics.failing import UsersFrames

NOT_KEPT = (
    "--adopt: {} is compiled for this call only, there is no compiled function that could use the "
    "schedule; give it a name first, such as f = nbcomp.jit(…), and call that"
)


@magics_class
class ScheduleMagics(Magics):
    """The command that takes a schedule."""

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell)
        self.notebook = shell
        self.best: dict[str, tuple[float, Any]] = {}  # tried here: by kernel, over the default

    @magic_arguments()
    @argument("call", nargs="+", help="a call such as f(x, y)")
    @argument("--kernel", "-k", default="", help="which of its kernels, if there are several")
    @argument("--inputs", "-i", type=unquoted, default="", help='arguments, such as "x, y"')
    @argument("--seconds", type=float, default=2.0, help="about how long the timing may take")
    @argument("--adopt", action="store_true", help="let calls use this schedule from now on")
    @cell_magic
    def schedule(self, line: str, cell: str) -> Any:
        """Play the steps of the cell on a kernel, check the result and time it.

        A step a line, such as `split("i", 64)` or `vectorize("j", unroll=2)`; or a schedule that
        was saved as JSON.
        """
        from nbcomp.display.trial import TrialReport  # brings the compiler: not when loaded
        from nbcomp.measure.schedules import kernel_named, try_schedule
        from nbcomp.schedule.canonical import canonical
        from nbcomp.schedule.language import parse

        __tracebackhide__ = True
        args = parsed(self.schedule, line)
        with UsersFrames(self.notebook):
            try:
                steps = parse(cell)
            except ScheduleError as error:
                raise UsageError(str(error)) from None
            call = call_of(self.notebook, " ".join(args.call), args.inputs, keep=args.adopt)
            call.find_compiled()
            if call.refused is not None:
                raise call.refused
            if args.adopt and not call.kept:
                raise UsageError(NOT_KEPT.format(" ".join(args.call)))
            compiled = call.compiled
            names = [k.name for k in compiled.kernels]
            if not args.kernel and len(names) != 1:
                raise UsageError(f"--kernel: which one? {compiled.name} has {', '.join(names)}")
            name = args.kernel or names[0]
            try:
                known = canonical(kernel_named(compiled, name).lowered)
                share, best = self.best.get(known.digest, (1.0, None))
                rival = known.own(best) if best else None
                what = (compiled, name, steps, call.args, call.kwargs)
                trial = try_schedule(*what, seconds=args.seconds, rival=rival)
            except ScheduleError as error:
                raise UsageError(str(error)) from None
            if trial.same and trial.change and trial.change.median < share:
                self.best[known.digest] = trial.change.median, known.told(steps)
            adopt = args.adopt and trial.same
            if adopt:
                call.function.adopt(compiled, trial.compiled)
            return TrialReport(trial, adopt)
