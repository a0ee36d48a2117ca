"""`jit`: a function that compiles itself when it is called, and runs natively after.

A function whose whole graph can be captured becomes one native call; one with graph breaks runs in
`parts`.  What cannot be compiled at all runs in NumPy, and says so.  Knows the pipeline and the run
time's entry.
"""

from __future__ import annotations

import copy
import functools
import inspect
import sys
import threading
import types
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from nbcomp.captures import Captures
from nbcomp.compiled import Compiled
from nbcomp.contests import Contest, Contests, Way, kind_of
from nbcomp.definitions import (
    all_positional,
    around,
    definition_of,
    form_of,
    same_code,
    same_types,
    type_of,
)
from nbcomp.dispatch import Library
from nbcomp.errors import PACKAGE, CaptureError, NbcompError, Unsupported, leave_users_frames
from nbcomp.explained import Explained, explained
from nbcomp.frontend import reporting
from nbcomp.frontend.bytecode.capture import (
    has_loops,
)
from nbcomp.frontend.bytecode.machine import Stopped, TooLong
from nbcomp.frontend.bytecode.part import Break, break_of
from nbcomp.frontend.result import bind
from nbcomp.frontend.session import NOTHING_OPEN, Openings
from nbcomp.frontend.trace import Capture, signature_of
from nbcomp.frontend.unrolled import LongLoop
from nbcomp.frontend.words import advise
from nbcomp.graph.control import Loops
from nbcomp.openings import (
    OpenLengths,
    examples,
    of_annotations,
    of_types,
    stand_in,
    with_types,
)
from nbcomp.options import EVERYTHING, Options
from nbcomp.parts import (
    Parts,
    Recompilation,
    RecompileLimit,
    signature_key,
    why_whole,
)
from nbcomp.pipeline import compile_captured
from nbcomp.record import Location, Remark
from nbcomp.runtime import interpret, validity
from nbcomp.runtime.callable import Callable
from nbcomp.runtime.entry import NativeFunction, as_called
from nbcomp.runtime.plan import (
    Guard,
    HostStep,
    Plan,
    guards_of,
    handed_on,
)
from nbcomp.types import TensorType
from nbcomp.wrapped import (
    NOTHING,
    Form,
    callable_of,
    calling_routine,
    eager_call,
    forward_in_python,
    global_name,
    is_model,
    is_routine,
    name_of,
    needed_form,
    owner_of,
    parted,
)

SETTLED = 32  # lengths of open variants that the native entry takes at a time
VARIANTS = 64  # of one function; calls that none of them takes run in Python


class NumpyFallback(UserWarning):
    """A function, or a call of it, runs in NumPy instead of compiled code; the message says why."""


class LimitReached(Unsupported):
    """A function has as many variants as are kept."""


class Jit(Callable):
    """A function that is compiled when it is called, once for each signature.

    `compiled` is the newest `Compiled`, `variants` are all of them that take whole calls; `lengths`
    are those of arrays that are left open, since they differ from call to call; `parts`
    has those of a function with graph breaks, `breaks` where these are; `fallbacks` says what ran
    in NumPy instead.  `__wrapped__` is the Python function, `options` are how it is compiled.
    """

    __nbcomp_jitted__ = True

    def __init__(self, function: Any, python: Any = None, options: Options = EVERYTHING) -> None:
        self.__wrapped__, self.options = function, options
        self._python = python or function  # what runs where nothing is compiled
        self._routine = is_routine(python)
        self._form = form_of(function) if self._routine else None  # the calls that it takes
        self.forms: dict[Form, Jit] = {}  # what takes other calls of a routine
        model = self._python is not function and not self._routine
        self._captures = Captures(function, model)
        self._eager = eager_call(function, python)  # how that is called in parts, for models
        self.__name__ = name_of(function)
        self.__qualname__ = getattr(function, "__qualname__", self.__name__)
        self.__doc__ = getattr(function, "__doc__", None)
        self.__module__ = getattr(function, "__module__", __name__)
        self.variants: list[Compiled] = []
        self.fallbacks: list[Unsupported] = []
        self.recompilations: list[Recompilation] = []
        self.lengths = OpenLengths()
        self._settling: list[Compiled] = []  # variants that the entry takes length by length
        self._settled: list[tuple[Compiled, Plan]] = []
        self.parts: Parts | None = None
        self.contests = Contests()  # between what is compiled and Python
        self._handed: dict[int, Plan] = {}  # what Python won, by contest
        self._refused: dict[Any, Unsupported] = {}  # by the call's types and those of the globals
        self._said: set[Break] = set()
        self._full = False  # there are as many variants as are kept
        self._silent = True  # nobody asked for floating-point errors so far
        self.quiet = False  # of a helper that was not asked for: warn of what NumPy computes only
        self._lock = threading.RLock()
        self._watcher: Any = None
        self._native = self._entry()

    def _entry(self) -> NativeFunction:
        """A native entry without plans; it knows the code and defaults as they are now."""
        self._definition = definition_of(self.__wrapped__)
        signature = with_types(self.__wrapped__)
        if signature is not None:
            self.lengths.declare(of_annotations(signature))

        def failed(values: tuple[Any, ...], plan: Plan, step: int, status: int) -> Any:
            args, kwargs = as_called(signature, values)
            return self.failed(args, plan, step, status, kwargs)

        return NativeFunction(self.__name__, self.__doc__, self.slow_path, failed, signature)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The first call, which connects the native entry; calls that are watched; and all calls
        where no object can be connected.
        """
        __tracebackhide__ = True
        if self._watcher is not None:
            return self._watcher(*args, **kwargs)
        try:
            if self.parts is not None and not self.variants:
                return self.in_parts(args, kwargs)
            self._native.connect(self)
            return self._native.callable(*args, **kwargs)
        except BaseException as error:
            advise(error)
            leave_users_frames(error)
            raise

    def __getattr__(self, name: str) -> Any:
        """A model's own: `state_dict`, `parameters`, `training`, its submodules."""
        model = vars(self).get("__wrapped__")
        if name.startswith("__") or not is_model(model):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(model, name)

    @classmethod
    def of(cls, function: Any, options: Options) -> Jit:
        """The function, to be compiled by these options; a routine of NumPy's or a builtin as a
        function that calls it."""
        if not is_routine(function):
            return cls(function, options=options)
        return cls(calling_routine(function, needed_form(function)), function, options)

    def anew(self) -> Jit:
        """The same function without variants."""
        return self.of(self.__wrapped__, self.options)

    def __copy__(self) -> Jit:
        return self  # as functions are

    def __deepcopy__(self, memo: dict[int, Any]) -> Jit:
        """Itself, as functions are; of an object or its method, that of a copy of the object."""
        function = copy.deepcopy(self.__wrapped__, memo)
        return self if function is self.__wrapped__ else self.of(function, self.options)

    def __reduce__(self) -> Any:
        """By its name, or as the function; whoever reads it compiles it again."""
        return global_name(self) or (self.of, (self._given, self.options))

    def _other_form(self, form: Form) -> Jit:
        """What takes calls of a routine with other arguments than those it must have."""
        if form not in self.forms:
            function = calling_routine(self._python, form)
            self.forms[form] = type(self)(function, self._python, self.options)
        return self.forms[form]

    @property
    def _given(self) -> Any:
        """What was given to be compiled."""
        return self._python if self._routine else self.__wrapped__

    def watch(self, call: Any) -> None:
        """Let calls of this function go to `call` instead; None ends that."""
        self._watcher = call
        if call is None:
            self._native.connect(self)
        else:
            self.disconnect()

    @property
    def unwatched(self) -> Any:
        """The native entry itself, also while the function is watched."""
        return self._native.callable

    @property
    def breaks(self) -> list[Break]:
        """Where Python goes on between compiled parts, in the order of the program."""
        found = self.parts.breaks if self.parts is not None else {}
        return [found[index] for index in sorted(found)]

    @property
    def has_loops(self) -> bool:
        """Whether loops over elements are compiled, which take Python a hundred times as long."""
        own = any(has_loops(v.capture) for v in self.variants)
        return own or (self.parts is not None and self.parts.has_loops)

    def explain(self) -> Explained:
        """The graphs, the breaks, the guards and the recompilations, with the reasons."""
        return explained(self)

    @property
    def compiled(self) -> Compiled | None:
        """The newest variant."""
        return self.variants[-1] if self.variants else None

    def report(self, path: str | Path) -> Path:
        """Write the newest variant as one HTML file: see `Compiled.report`.  Raises NbcompError
        where there is none."""
        if self.compiled is None:
            raise NbcompError(f"{self.__name__} has not been compiled yet: call it once")
        return self.compiled.report(path)

    def slow_path(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Everything the native entry refuses: keywords, new signatures, results that are trees.

        Errors show the user's frames.  Arrays of a class that says how compiled functions are
        called on them (`__nbcomp_call__`) are left to it.
        """
        __tracebackhide__ = True
        for value in (*args, *kwargs.values()):
            call = getattr(type(value), "__nbcomp_call__", None)
            if call is not None:
                return call(self.slow_path, args, kwargs)
        try:
            return self._slow_path(args, kwargs)
        except BaseException as error:
            advise(error)
            leave_users_frames(error)
            raise

    def _slow_path(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self._routine and (form := (len(args), tuple(kwargs))) != self._form:
            return self._other_form(form)(*args, **kwargs)
        if definition_of(self.__wrapped__) != self._definition:
            self._begin_again()
        if self._full and not kwargs and all(map(_native, self.variants)) and not self._settling:
            return self._python(*args, **kwargs)  # the native entry has looked
        if (found := self._find(args, kwargs)) is not None:
            return self._run(*found, args, kwargs)
        key = _call_key(args, kwargs)
        if self._refused and (key, self._around()) in self._refused:
            return self._python(*args, **kwargs)
        if self.parts is not None:
            return self.in_parts(args, kwargs)
        return self._unknown_call(key, args, kwargs)

    def _unknown_call(self, key: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call that no variant takes: compile one, or find out why not."""
        why: Break | None = None
        if reporting.in_force():
            return self._reported(args, kwargs)
        try:
            with self._lock:  # another thread may have compiled it in the meantime
                found = self._find(args, kwargs)
                if found is None:
                    made = self.compile(*args, **kwargs)
                    found = made, bind(made.capture.signature, args, kwargs)
        except Stopped as stop:
            why = break_of(stop)
        except LimitReached as error:
            self.fallbacks.append(error.with_traceback(None))
            return self._python(*args, **kwargs)
        except Unsupported as error:
            # Without its traceback, whose frames would keep the arguments alive.
            reason = error.with_traceback(None)
            why = self._of_model(reason)
        except CaptureError as error:
            why = self._of_model(error.with_traceback(None))
            if why is None:
                raise
        else:
            self._not_refused(key)
            return self._run(*found, args, kwargs)
        if why is not None:
            return self._broken(why, key, args, kwargs)
        return self._in_numpy(reason, key, args, kwargs)  # where errors are the user's alone

    def _reported(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call while NumPy reports floating-point errors: Python's, with a warning once."""
        if self._silent:
            self._silent = False
            states = ", ".join(
                sorted({str(kind) for kind in np.geterr().values()} - {"ignore", "warn"})
            )
            self._warn(
                Unsupported(
                    f"{reporting.REASON}, and np.geterr() asks for them ({states})",
                    hint=reporting.HINT,
                ),
                "",
            )
        return self._python(*args, **kwargs)

    def _of_model(self, error: NbcompError) -> Break | None:
        """Why a model, which is captured as a whole, is compiled in parts; None if it cannot be."""
        if not is_model(self.__wrapped__) or self._whole():
            return None
        return Break(0, 0, (), error, error.location or Location("", 0))

    def _broken(self, why: Break, key: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call whose graph breaks: in parts, unless Python has to run all of it."""
        whole = self._whole()
        if isinstance(why.error, LongLoop) and not isinstance(why.error, TooLong):
            return self._in_numpy(why.error, key, args, kwargs)
        if not isinstance(why.error, NbcompError):  # Python's own, which Python raises ...
            result = self._python(*args, **kwargs)
            if not whole:  # ... or catches
                self._take_apart()
            return result
        if whole:
            reason = Unsupported(f"{why.reason}; {whole}", why.location, why.hint)
            return self._in_numpy(reason, key, args, kwargs)
        self._take_apart()
        return self.in_parts(args, kwargs)

    def _whole(self) -> str:
        """Why the function cannot be compiled in parts; "" if it can."""
        function = parted(self.__wrapped__)
        if function is None or (self._python is not self.__wrapped__ and self._eager is None):
            return "only plain functions and methods are compiled in parts"
        return why_whole(function)

    def _take_apart(self) -> None:
        function = parted(self.__wrapped__)
        assert function is not None
        with self._lock:
            if self.parts is None:
                bound = owner_of(self._python) is not None  # it is called without its owner
                own = {} if bound else {self._eager is not None: self}
                self.parts = Parts(function, self._partner, own, self.options)
                if not self.variants:
                    self.disconnect()

    def _is_parted(self, parts: Parts) -> bool:
        """Whether these are the parts of what is called, as it is now."""
        function = parted(self.__wrapped__)
        return parts.function is function and parts.code is function.__code__

    def _partner(self, function: Any, model: Any) -> Jit:
        """A helper that this function, in parts, calls; or the `forward` of models like this."""
        made = Jit(function, forward_in_python(model, function), self.options)
        made.quiet = True
        return made

    def in_parts(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the function in parts, or in Python where that has turned out to be faster."""
        __tracebackhide__ = True
        parts = self.parts
        assert parts is not None
        if not self._is_parted(parts):
            return self.slow_path(args, kwargs)
        contest = self._contest(parts, args, kwargs)
        if contest is None or contest.winner is Way.COMPILED:
            return self._through_parts(parts, args, kwargs)
        if contest.winner is Way.PYTHON:
            contest.passed()
            return self._python(*args, **kwargs)
        way, before = contest.turn, (parts.version, len(parts.compiled))
        start = self.contests.clock()
        if way is Way.PYTHON:
            result = self._python(*args, **kwargs)
        else:
            result = self._through_parts(parts, args, kwargs)
        seconds = self.contests.clock() - start
        if before == (parts.version, len(parts.compiled)) and contest.took(way, seconds):
            self._decided(contest)
            lost = all(c.winner is Way.PYTHON for c in self.contests.kinds.values())
            whole = any(type(value) is int for value in args)  # others may be another kind
            handed = lost and not whole and self._hand_on(args, kwargs, contest)
            if handed and self._watcher is None:
                self._native.connect(self)
        return result

    def _contest(
        self, parts: Parts, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Contest | None:
        """Between the parts and Python, for calls like this one."""
        kind = _call_key(args, kwargs), tuple(map(kind_of, (*args, *kwargs.values())))
        contest = self.contests.kinds.get(kind)
        if contest is None:
            parts.wake()  # what was of no use for other calls may be for these
            contest = self.contests.of(kind)
        if contest is not None and contest.winner is None and self.has_loops:
            contest.winner = Way.COMPILED
        return contest

    def _decided(self, contest: Contest) -> None:
        if contest.winner is Way.PYTHON and not self.quiet and not contest.chances:
            parts = self.parts
            first = parts.first_reason() if parts is not None else Unsupported("")
            hint = f"; it has graph breaks, the first: {first}" if first.message else ""
            message = f"{self.__name__} runs in Python for now: {contest}{hint}"
            warnings.warn(message, NumpyFallback, _users_level())

    def _through_parts(self, parts: Parts, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        __tracebackhide__ = True
        owner = owner_of(self._python)
        given = args if owner is None else (owner, *args)
        try:
            if self._eager is not None:
                return self._eager(parts.callable, given, kwargs)
            return parts.callable(*given, **kwargs)
        finally:
            if not parts.compiled:
                self._nothing(parts, args, kwargs)
            elif len(self._said) != len(parts.breaks):
                self._say(parts)

    def _nothing(self, parts: Parts, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """No part of a call could be compiled: such calls are Python's from now on."""
        self.parts = None
        if self._watcher is None:
            self._native.connect(self)
        reason = parts.first_reason()
        self._refuse(args, kwargs, reason)
        self._warn(reason, "")

    def _say(self, parts: Parts) -> None:
        """Warn of new breaks at what NumPy has to compute."""
        for why in self.breaks:
            if why not in self._said and why.in_numpy:
                reason = Unsupported(why.reason, why.location, why.hint)
                self._warn(reason, ", the rest is compiled")
            self._said.add(why)

    def _warn(self, reason: Unsupported, rest: str) -> None:
        self.fallbacks.append(reason)
        if not self.quiet or "not compiled" in reason.message:
            message = f"{self.__name__} runs in NumPy{rest}: {reason}"
            warnings.warn(message, NumpyFallback, _users_level())

    def _begin_again(self) -> None:
        """Forget all variants: the function has other defaults, which they have for arguments, or
        other code."""
        with self._lock:
            self.variants.clear()
            self._settling.clear()
            self._settled.clear()
            self._refused.clear()
            self._full = False
            if self.parts is not None and not self._is_parted(self.parts):
                self.parts = None
            self.contests = Contests(self.contests.clock)
            self._handed.clear()
            self._native = self._entry()
            if self._watcher is None:
                self._native.connect(self)

    def _find(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Compiled, Sequence[Any]] | None:
        """The variant for these arguments, and the arguments bound; None if there is none yet."""
        for variant in reversed(tuple(self.variants)):
            values = bind(variant.capture.signature, args, kwargs, self.__wrapped__)
            if variant.mismatch(values) is None:
                return variant, values
        return None

    def compile(self, *args: Any, **kwargs: Any) -> Compiled:
        """The variant for these arguments, compiled now if it is new; lengths that types among
        them name (`nbcomp.f32["n", 784]`) are left open.  Raises `Unsupported` where there are as
        many variants as are kept."""
        args, kwargs = self._without_types(args, kwargs)
        with self._lock:
            reason = self.why_compiled(self.variants, args, kwargs)
            if len(self.variants) >= VARIANTS:
                self._make_room(reason or "")
            made = self._compiled(args, kwargs)
            self.variants.append(made)
            if reason:
                where = made.location or Location("", 0)
                self.recompilations.append(Recompilation(where, reason, made.compile_seconds))
            self._add(made)
            return made

    def _without_types(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments with arrays in place of types."""
        values = (*args, *kwargs.values())
        if not any(isinstance(v, TensorType) for v in values):
            return args, kwargs
        lengths = examples(values)
        if lengths:
            signature = signature_of(self.__wrapped__)
            bound = bind(signature, args, kwargs, self.__wrapped__)
            self.lengths.declare(of_types(bound, list(signature.parameters)))
        named = {k: stand_in(v, lengths) for k, v in kwargs.items()}
        return tuple(stand_in(v, lengths) for v in args), named

    def _make_room(self, reason: str) -> None:
        """Forget variants that no call can reach any more, as what they use has been replaced.
        Raises `Unsupported`, after a warning, if there are none."""
        gone = [v for v in self.variants if validity.is_replaced(v.plan)]
        for variant in gone:
            self._forget(variant)
            self.variants.remove(variant)
        if gone:
            return
        limit = (
            f"compiled for {VARIANTS} kinds of calls; others run in Python (in this one {reason})"
        )
        if not self._full:
            self._full = True
            warnings.warn(f"{self.__name__} is {limit}", RecompileLimit, _users_level())
        raise LimitReached(limit)

    def _compiled(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Compiled:
        """Compile for these arguments: with open lengths, where some differ from call to call or
        are declared; where that cannot be, for these only."""
        function, note = self.__wrapped__, None
        if self.variants or self.lengths:
            values = bind(signature_of(function), args, kwargs, function)
            self.lengths.see(self.variants, values)
        if self.lengths:
            capture = functools.partial(self._capture, args, kwargs, self.lengths.names)
            try:
                made = compile_captured(function, capture, options=self.options, opened=True)
                self.lengths.close(made)
                return made
            except Exception as error:  # if it is the user's, it is raised once more
                note = Remark("missed", "lengths", f"lengths are not left open: {error}")
        capture = functools.partial(self._capture, args, kwargs)
        made = compile_captured(function, capture, options=self.options)
        if note is not None:
            self.lengths.refused(values)
            made.trace.heard.append(note)
        return made

    def _capture(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], opened: Openings = NOTHING_OPEN
    ) -> Capture:
        return self._captures.of_call(args, kwargs, opened)

    def why_compiled(
        self, variants: Sequence[Compiled], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> str | None:
        """Why none of these variants takes a call, by the nearest; None if there are none."""
        if not variants:
            return None
        values = bind(variants[-1].capture.signature, args, dict(kwargs), self.__wrapped__)
        return validity.why_none([variant.plan for variant in variants], tuple(values))

    def adopt(self, old: Compiled, new: Compiled) -> None:
        """Run another compilation of the same signature in place of one of the variants."""
        with self._lock:
            position = self.variants.index(old)
            self._forget(old)
            self.variants[position] = new
            self._add(new)

    def _run(
        self,
        variant: Compiled,
        values: Sequence[Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        contest = self.contests.kinds.get(variant)
        if contest is not None and contest.winner is not Way.COMPILED:
            return self._contested(contest, variant, args, kwargs)
        if variant in self._settling:
            self._settle(variant, values)
        try:
            return variant.run(values)
        except interpret.StepFailed as error:
            step, status = error.step, error.status
        return self.failed(args, variant.plan, step, status, kwargs)

    def _add(self, made: Compiled) -> None:
        """Let the native entry take a variant, if it can; else its lengths, one after another.

        One that calls NumPy between its kernels is held against Python first.
        """
        if _may_be_slower(made):
            contest = self.contests.of(made)
            if contest is not None and contest.winner is not Way.COMPILED:
                return
        if _native(made) and not self._native.add(made.plan):
            self._settling.append(made)

    def _contested(
        self, contest: Contest, variant: Compiled, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """A call of a variant that Python may be faster than."""
        if contest.winner is Way.PYTHON:
            contest.passed()
            return self._python(*args, **kwargs)
        way = contest.turn
        start = self.contests.clock()
        if way is Way.PYTHON:
            result = self._python(*args, **kwargs)
        else:
            try:
                result = variant.entry(*args, **kwargs)
            except interpret.StepFailed as error:
                return self.failed(args, variant.plan, error.step, error.status, kwargs)
        if contest.winner is None and contest.took(way, self.contests.clock() - start):
            if contest.winner is Way.COMPILED:
                self._add(variant)
            else:
                if variant.plan.open is None:
                    self._leave_to_python(variant.plan.guards, contest)
                self._decided(contest)
        return result

    def _leave_to_python(self, guards: tuple[Guard, ...], contest: Contest | None = None) -> None:
        """Let the native entry hand the calls that these guards hold for to Python; after a contest
        until that is open again."""
        signature = with_types(self.__wrapped__)
        if signature is None or not all_positional(signature):
            return

        def call(values: tuple[Any, ...]) -> Any:
            __tracebackhide__ = True
            if contest is not None and contest.passed():
                self._take_back(contest)
            return self._in_python(values)

        plan = handed_on(guards, len(signature.parameters), call)
        if contest is not None:
            self._handed[id(contest)] = plan
        self._native.add(plan)

    def _take_back(self, contest: Contest) -> None:
        """The native entry hands calls of a contest on no more."""
        plan = self._handed.pop(id(contest), None)
        if plan is not None:
            self._native.remove(plan)

    def _in_python(self, values: tuple[Any, ...]) -> Any:
        """The call with these arguments."""
        __tracebackhide__ = True
        try:
            return self._python(*values)
        except BaseException as error:
            leave_users_frames(error)
            raise

    def _settle(self, variant: Compiled, values: Sequence[Any]) -> None:
        """Let the native entry take these lengths of a variant, and forget those of long ago."""
        plan = validity.settled(variant.plan, tuple(values))
        with self._lock:
            self._native.add(plan)
            self._settled.append((variant, plan))
            if len(self._settled) > SETTLED:
                self._native.remove(self._settled.pop(0)[1])

    def _forget(self, variant: Compiled) -> None:
        """The native entry takes nothing of a variant any more."""
        self._native.remove(variant.plan)
        contest = self.contests.kinds.pop(variant, None)
        if contest is not None:
            self._take_back(contest)
        if variant in self._settling:
            self._settling.remove(variant)
        for entry in [e for e in self._settled if e[0] is variant]:
            self._settled.remove(entry)
            self._native.remove(entry[1])

    def failed(
        self,
        args: tuple[Any, ...],
        plan: Plan,
        step: int,
        status: int,
        kwargs: Mapping[str, Any] = MappingProxyType({}),
    ) -> Any:
        """A step of a plan gave a status: Python runs the call, and raises what it raises; unless
        arrays of the caller's were changed by then, where the error is raised as it stands."""
        variant = next((v for v in self.variants if v.plan is plan), None)
        error = None
        if variant is not None:
            values = bind(variant.capture.signature, args, dict(kwargs), self.__wrapped__)
            error = variant.failure(step, status, values)
        if error is not None:
            raise error
        return self._python(*args, **kwargs)

    def _in_numpy(
        self, reason: Unsupported, key: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        self._refuse(args, kwargs, reason)
        self._warn(reason, "")
        return self._python(*args, **kwargs)

    def _refuse(self, args: tuple[Any, ...], kwargs: dict[str, Any], reason: Unsupported) -> None:
        """Calls of these types are Python's, as long as the globals have the types they have."""
        self._refused[_call_key(args, kwargs), self._around()] = reason
        self._hand_on(args, kwargs)

    def _not_refused(self, key: Any) -> None:
        """Calls of these types are compiled now: why they were not is past."""
        for place in [place for place in self._refused if place[0] == key]:
            reason = self._refused.pop(place)
            self.fallbacks[:] = [known for known in self.fallbacks if known is not reason]

    def _around(self) -> tuple[Any, ...]:
        """The types of the values that the function reads besides its arguments."""
        return tuple((s.key, *type_of(value)) for s, value in around(self.__wrapped__))

    def _hand_on(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], contest: Contest | None = None
    ) -> bool:
        """Let the native entry hand calls of these types on to Python; whether it can tell them."""
        signature = with_types(self.__wrapped__)
        complete = signature is not None and len(signature.parameters) == len(args)
        guards = guards_of(args) if complete and not kwargs else None
        if guards is not None:
            same = (*same_code(self.__wrapped__), *same_types(self.__wrapped__))
            self._leave_to_python((*guards, *same), contest)
        return guards is not None

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """As a method: bound to its instance like a function."""
        if instance is None:
            return self
        return types.MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<nbcomp.jit {self.__qualname__}: {self._made()}>"

    def _made(self) -> str:
        """What was compiled so far, in words."""
        if self.parts is None or self.variants or not self.parts.compiled:
            return signatures(self.variants)
        count, breaks = sum(bool(r.variants) for r in self.parts.regions.values()), len(self.breaks)
        between = f"{breaks} graph break{'s' * (breaks != 1)}"
        return f"compiled in {count} part{'s' * (count != 1)}, {between}"


def signatures(variants: Sequence[Compiled]) -> str:
    """How many a function is compiled for, in words."""
    return f"{len(variants)} signature{'s' * (len(variants) != 1)} compiled"


def _users_level() -> int:
    """The `stacklevel` of the user's line, for a warning of the function that calls this."""
    frame, level = sys._getframe(1), 1
    while frame.f_back and frame.f_code.co_filename.startswith(PACKAGE):
        frame, level = frame.f_back, level + 1
    return level


def _native(compiled: Compiled) -> bool:
    """Whether the native entry can check the arguments and give the function's result by itself."""
    return compiled.plain


def _may_be_slower(compiled: Compiled) -> bool:
    """Whether it may be slower than Python: it leaves work to NumPy.  Loops over elements never
    are."""
    loops = any(isinstance(n.op, Loops) for n in compiled.captured.nodes)
    return not loops and any(isinstance(s, HostStep) for s in compiled.plan.steps)


def _call_key(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Types and shapes of a call, to remember what was refused."""
    return signature_key((*args, *kwargs.values())), tuple(kwargs)


def jit(
    function: Any = NOTHING, *, libraries: Library | Sequence[Library] = (), precision: str = ""
) -> Any:
    """A function that compiles itself on its first call with each signature, then runs natively.

    Arguments and results are those of the function.  Where its graph breaks (at a `print`, a branch
    that depends on an array's values, a call of an unknown library) Python goes on between compiled
    parts: `explain()` says where and why.  What cannot be compiled at all runs in NumPy, with a
    `NumpyFallback` warning.

    A model runs as its `forward` does, and has its attributes (`jit(model).state_dict()`).

    Of a class, as a decorator, the method that computes is compiled: `forward`, or `__call__`.
    Models have no parts: where values decide in one, it is captured by its source, with both ways.
    libraries: whose routines are called where their patterns are found (`nbcomp.Library`).
    precision: "bf16" rounds the operands of float32 products to bfloat16, which is faster on CPUs
    with instructions for that; by default everything is as precise as NumPy's.  Without a function,
    a decorator with these options.  Raises TypeError for what cannot be called.

    Copies and pickles of what it gives are of the function, which is compiled again where it is
    called.
    """
    options = EVERYTHING.asking(libraries, precision)
    if function is NOTHING:
        return functools.partial(jit, libraries=libraries, precision=precision)
    if isinstance(function, Jit):
        if options in (EVERYTHING, function.options):
            return function
        function = function.__wrapped__
    if isinstance(function, type):
        return _jit_class(function, options)
    return Jit.of(callable_of(function, "jit"), options)


def _jit_class(cls: Any, options: Options) -> Any:
    """The class, its computing method compiled; all instances share the compiled variants."""
    name = "forward" if hasattr(cls, "forward") else "__call__"
    method = inspect.getattr_static(cls, name, None)
    if isinstance(method, Jit):
        return cls
    if not isinstance(method, types.FunctionType):
        raise TypeError(f"{cls.__name__} has no method forward or __call__ to compile")
    # A module that is told so hands plain arrays to its `forward`, as compiled code takes them.
    told = getattr(cls, "with_compiled_forward", None)
    setattr(cls, name, Jit(method, told(method) if told else None, options))
    return cls
