"""`nbcomp.tune`: what is asked for in a user's words becomes a search, here or on a cluster."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from nbcomp.compiled import Compiled
from nbcomp.errors import NbcompError, an
from nbcomp.frontend.result import bind
from nbcomp.jitted import Jit, jit
from nbcomp.schedule.database import Database, default_path, use_record
from nbcomp.tuning.cluster import Cluster
from nbcomp.tuning.result import Say, Tuned
from nbcomp.tuning.runner import Runner
from nbcomp.tuning.tuner import Tuner


def tune(
    function: Any,
    *args: Any,
    seconds: float = 30.0,
    record: str | Path | Database | None = None,
    on: str = "",
    say: Say = lambda _: None,
    seed: int = 0,
    drawn: int = 0,
    **kwargs: Any,
) -> Tuned:
    """Search schedules for a function on these arguments, for about so many seconds.

    function: a Python function, a compiled one (which uses what is found from then on), or a
    `Compiled`.  record: the file to which trials are appended, and which is looked at when
    something is compiled from then on; by default the user's own (`docs/tuning.md`).  on: the
    address of a dask cluster whose machines search, each kind of CPU for itself.  say: told how it
    goes.  drawn: so many schedules at random are measured after the search, to say how well the
    cost model ranks what it has not seen.  An interrupt ends the search and keeps the best.

    Raises ValueError for seconds that are none, NbcompError where there is nothing to tune, where
    the function was not compiled for these arguments, where the record cannot be written, and where
    no cluster is at the address.
    """
    if not isinstance(seconds, int | float) or not 0 < seconds < math.inf:
        raise ValueError(f"seconds: how long to search, a number above 0, not {seconds!r}")
    compiled = compiled_of(function, args, kwargs)
    database = record_named(record)

    def search(runner: Runner | None = None) -> Tuner:
        what = compiled, args, kwargs, float(seconds), database, say, seed
        return Tuner(*what, runner=runner, drawn=drawn)

    tuned = search_on(on, search) if on else search().run()
    if isinstance(function, Jit) and compiled in function.variants:
        function.adopt(compiled, tuned.compiled)
    return tuned


def search_on(address: str, search: Callable[[Runner], Tuner]) -> Tuned:
    """A search on each kind of CPU in a cluster, at the same time: that on this machine's kind, or
    else the first, with the others beside it.  Raises NbcompError where there is no cluster.
    """
    with Cluster(address) as cluster:
        first, *others = map(search, cluster.kinds)
        with ThreadPoolExecutor(max(len(others), 1)) as threads:
            for tuner in others:
                tuner.say = lambda _: None  # one of them is shown
            running = [threads.submit(tuner.run) for tuner in others]
            try:
                found = first.run()
            except BaseException:
                first.ended.set()
                raise
            finally:
                for tuner in others:
                    if first.interrupted or first.ended.is_set():
                        tuner.ended.set()
            return replace(found, elsewhere=tuple(future.result() for future in running))


def compiled_of(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Compiled:
    """What is tuned for a call.  Raises NbcompError where there is no such thing."""
    if isinstance(function, Compiled):
        values = bind(function.capture.signature, args, dict(kwargs))
        if why := function.mismatch(values):
            raise NbcompError(f"{function.name} was compiled for other arguments: {why}")
        return function
    if not callable(function):
        raise NbcompError(f"only functions are tuned, not {an(type(function).__name__)}")
    jitted = function if isinstance(function, Jit) else jit(function)
    if not isinstance(jitted, Jit):
        raise NbcompError("a class is not tuned itself: tune an instance of it, or its method")
    for variant in reversed(jitted.variants):
        values = bind(variant.capture.signature, args, dict(kwargs), jitted.__wrapped__)
        if variant.mismatch(values) is None:
            return variant
    try:
        return jitted.compile(*args, **kwargs)
    except NbcompError:
        raise
    except Exception as error:
        name = jitted.__name__
        raise NbcompError(
            f"{name} is not one compiled program for these arguments: {error}",
            hint="tune the functions it calls",
        ) from error


def record_named(record: str | Path | Database | None) -> Database | None:
    """The record of that name, in use from now on; by default the user's own, None where it is
    switched off.  Raises NbcompError where it cannot be written."""
    path = default_path() if record is None else record
    if path is None:
        return None
    database = path if isinstance(path, Database) else Database(path)
    database.check()
    return database if record is None else use_record(database)
