"""Searches on the machines of a dask cluster: each measures in workers of its own.

Machines are kept apart by their CPU: what is fast on one kind says little of another, so each kind
has a search of its own.  Of several dask workers on one host one measures, since two would disturb
each other.  dask.distributed is imported when a cluster is named.
"""

from __future__ import annotations

import atexit
import math
from collections import ChainMap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, Self
from urllib.parse import urlsplit

from nbcomp.errors import NbcompError
from nbcomp.machine import Machine, host
from nbcomp.schedule.database import target_of
from nbcomp.tuning.bench import Wanted
from nbcomp.tuning.tasks import Task
from nbcomp.tuning.worker import Outcome, Outcomes, Workers
from nbcomp.version import VERSION

PATIENCE = 10.0  # seconds until a scheduler must have answered
CHUNK = 8  # candidates that a host gets at a time

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

    machine: what each of them is.  addresses: of the dask worker on each.
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
        if task is not self._task:
            self._sent = self.client.scatter(task, workers=self.addresses, broadcast=True)
            self._task = task

    def run(
        self, task: Task, candidates: Iterable[Wanted], best: float = math.inf
    ) -> Iterator[Outcomes]:
        """What came of candidates, by position, as the hosts give it."""
        self.use(task)
        distributed = import_module("distributed")
        candidates = list(candidates)
        size = min(CHUNK, -(-len(candidates) // self.width) or 1)
        starts: dict[Any, range] = {}
        for number, start in enumerate(range(0, len(candidates), size)):
            chunk = range(start, min(start + size, len(candidates)))
            address = self.addresses[number % self.width]
            some = [candidates[k] for k in chunk]
            future = self._submit(measure, address, some, best)
            starts[future] = chunk
        for future in distributed.as_completed(list(starts), loop=self.client.loop):
            chunk = starts[future]
            yield dict(zip(chunk, self._outcomes(future, chunk), strict=True))

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

    def _outcomes(self, future: Any, chunk: range) -> list[Outcome]:
        try:
            found: list[Outcome] = future.result()
        except Exception as error:  # whatever the cluster raises: the candidates are not timed
            self.lost += 1
            return [Outcome(None, f"lost by the cluster: {error}")] * len(chunk)
        return found

    def race(self, task: Task, candidates: Sequence[Wanted], seconds: float) -> list[list[float]]:
        """Samples of the default schedule and of others, taken in turn on one host."""
        self.use(task)
        try:
            taken: list[list[float]] = self._submit(
                race, self.addresses[0], list(candidates), seconds
            ).result()
        except Exception:  # as above
            self.lost += 1
            return [[], *([] for _ in candidates)]
        return taken


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
