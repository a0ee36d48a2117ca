"""Searches on the machines of a dask cluster: each measures in workers of its own.

Machines are kept apart by their CPU: what is fast on one kind says little of another, so each kind
has a search of its own.  Of several dask workers on one host one measures, since two would disturb
each other.  dask.distributed is imported when a cluster is named.
"""

from __future__ import annotations

import atexit
import math
import time
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, Self
from urllib.parse import urlsplit

from nbcomp.errors import NbcompError
from nbcomp.machine import Machine, host
from nbcomp.schedule.database import target_of
from nbcomp.tuning.bench import Wanted
from nbcomp.tuning.runner import Outcome, Outcomes
from nbcomp.tuning.tasks import Task
from nbcomp.tuning.workers import Workers
from nbcomp.version import VERSION

PATIENCE = 10.0  # seconds until a scheduler must have answered
CHUNK = 8  # candidates that a host gets at a time
GLANCE = 2.0  # seconds between looks whether the hosts are still there
LONG = 90.0  # seconds a host may take for a chunk: its own workers are less patient

# ----------------------------------------------------------------------- on the cluster's side

_here: list[Workers] = []  # of this dask worker, kept alive from chunk to chunk


def describe() -> tuple[Machine, str]:
    """The machine this runs on, and the version of nbcomp there."""
    return host(), VERSION


def measure(task: Task, candidates: Sequence[Wanted], best: float) -> list[Outcome]:
    """Compile, check and time candidates on this machine."""
    found = dict(ChainMap(*map(dict, _workers().run(task, candidates, best))))
    return [found[k] for k in range(len(candidates))]


def race(task: Task, candidates: Sequence[Wanted], seconds: float) -> list[list[float]]:
    """Samples of the default schedule and of others, taken in turn on this machine."""
    return _workers().race(task, candidates, seconds)


def _workers() -> Workers:
    if not _here:
        _here.append(Workers().__enter__())
        atexit.register(end)
    return _here[0]


def end() -> None:
    """Close what measures here."""
    while _here:
        _here.pop().__exit__()


# --------------------------------------------------------------------------- on the user's side


class Hosts:
    """The hosts of a cluster that have the same CPU, as one place to measure in (`Runner`).

    machine: what each of them is.  addresses: of the dask worker on each.  One that is lost costs
    the candidates it was at, and the others go on.
    """

    def __init__(self, client: Any, machine: Machine, addresses: Sequence[str]) -> None:
        self.client, self.machine, self.addresses = client, machine, list(addresses)
        self.lost = 0
        self._task: Task | None = None
        self._sent: Any = None

    @property
    def width(self) -> int:
        """How many measure at once."""
        return len(self.addresses)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        with suppress(Exception):  # the cluster may be gone, which ends them too
            self.client.run(end, workers=self.addresses)

    def restart(self) -> None:
        """Begin anew after an interrupt."""
        self.__exit__()
        self._task = None

    def use(self, task: Task) -> None:
        """Have this kernel on all hosts."""
        while task is not self._task and self.addresses:
            to = list(self.addresses)
            try:
                self._sent = self.client.scatter(task, workers=to, broadcast=True, timeout=LONG)
                self._task = task
            except Exception:  # whatever it is: a host that does not take it is given up
                there = self.client.nthreads()
                for address in [a for a in to if a not in there] or to[:1]:
                    self._give_up(address)

    def run(
        self, task: Task, candidates: Iterable[Wanted], best: float = math.inf
    ) -> Iterator[Outcomes]:
        """What came of candidates, by position, as the hosts give it."""
        self.use(task)
        candidates = list(candidates)
        size = min(CHUNK, -(-len(candidates) // max(self.width, 1))) or 1
        chunks: dict[Any, range] = {}
        places: dict[Any, str] = {}
        for number, start in enumerate(range(0, len(candidates), size)):
            if not self.addresses:
                return
            chunk = range(start, min(start + size, len(candidates)))
            address = self.addresses[number % self.width]
            future = self._submit(measure, address, [candidates[k] for k in chunk], best)
            chunks[future], places[future] = chunk, address
        for future, arrived in self._arriving(places):
            chunk = chunks[future]
            yield dict(zip(chunk, self._outcomes(future, arrived, chunk), strict=True))

    def _submit(self, function: Any, address: str, *arguments: Any) -> Any:
        return self.client.submit(
            function,
            self._sent,
            *arguments,
            workers=[address],
            allow_other_workers=False,
            pure=False,
            retries=0,
        )

    def _arriving(self, places: Mapping[Any, str]) -> Iterator[tuple[Any, bool]]:
        """What was asked for, as it arrives; or not, where its host is gone or takes too long: such
        a host is given up."""
        wait = import_module("distributed").wait
        pending, end = dict(places), time.monotonic() + LONG
        while pending:
            try:
                with self.client.as_current():
                    done = wait(list(pending), GLANCE, "FIRST_COMPLETED").done
            except TimeoutError:
                there = self.client.nthreads() if time.monotonic() < end else ()
                gone = {address for address in pending.values() if address not in there}
                done = {future for future, address in pending.items() if address in gone}
                for address in gone:
                    self._give_up(address)
                for future in done:
                    del pending[future]
                    future.cancel()
                    yield future, False
                continue
            end = time.monotonic() + LONG
            for future in done:
                del pending[future]
                yield future, True

    def _give_up(self, address: str) -> None:
        """Go on without a host, or by another worker on it."""
        self.lost += 1
        self._task = None  # its data may have been there only
        self.addresses.remove(address)
        name = urlsplit(address).hostname
        others = (a for a in sorted(self.client.nthreads()) if a != address)
        self.addresses += [a for a in others if urlsplit(a).hostname == name][:1]

    def _outcomes(self, future: Any, arrived: bool, chunk: range) -> list[Outcome]:
        if not arrived:
            return [Outcome(None, "the host does not answer any more")] * len(chunk)
        try:
            found: list[Outcome] = future.result()
        except Exception as error:  # whatever the cluster raises: the candidates are not timed
            self.lost += 1
            return [Outcome(None, f"lost by the cluster: {error}")] * len(chunk)
        return found

    def race(self, task: Task, candidates: Sequence[Wanted], seconds: float) -> list[list[float]]:
        """Samples of the default schedule and of others, taken in turn on one host."""
        while self.addresses:
            self.use(task)
            address = self.addresses[0]
            asked = self._submit(race, address, list(candidates), seconds)
            for future, arrived in self._arriving({asked: address}):
                if arrived:
                    with suppress(Exception):  # as above
                        taken: list[list[float]] = future.result()
                        return taken
                    self.lost += 1
                    return [[], *([] for _ in candidates)]
        return [[], *([] for _ in candidates)]


class Cluster:
    """A dask cluster by the address of its scheduler, such as tcp://host:8786.

    kinds: its hosts by their CPU, that of this machine first.  Raises NbcompError where nothing
    answers there, where dask.distributed is not installed, and where the workers have another
    version of nbcomp or none.
    """

    def __init__(self, address: str) -> None:
        self.client = _client(address)
        try:
            self.kinds = self._kinds(address)
        except BaseException:
            self.client.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.client.close()

    def _kinds(self, address: str) -> list[Hosts]:
        try:
            found: dict[str, tuple[Machine, str]] = self.client.run(describe)
        except Exception as error:
            raise NbcompError(f"the workers of {address} cannot measure: {error}") from None
        if not found:
            raise NbcompError(f"the scheduler at {address} has no workers")
        others = sorted({version for _, version in found.values()} - {VERSION})
        if others:
            raise NbcompError(
                f"the workers of {address} have nbcomp {', '.join(others)}; this is {VERSION}"
            )
        kinds: dict[Machine, dict[str, str]] = {}
        for worker, (machine, _) in sorted(found.items()):
            kinds.setdefault(machine, {}).setdefault(urlsplit(worker).hostname or worker, worker)
        own = target_of(host())
        hosts = [Hosts(self.client, m, list(places.values())) for m, places in kinds.items()]
        return sorted(hosts, key=lambda h: target_of(h.machine) != own)


def _client(address: str) -> Any:
    try:
        distributed = import_module("distributed")
    except ImportError:
        raise NbcompError(
            "a search on a cluster needs dask.distributed", hint="pip install nbcomp[cluster]"
        ) from None
    try:
        return distributed.Client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise NbcompError(f"no dask scheduler answers at {address}: {error}") from None
