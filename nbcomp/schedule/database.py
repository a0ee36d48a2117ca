"""The record of tuning: a file to which every trial is appended as a line, and which is asked for
the best schedule when a kernel like it is compiled.

A line is JSON and complete in itself, written at once, under a lock and to the disk: a program that
is killed loses the trial it was at, and several may write at the same time.  What cannot be read is
skipped and reported.  Knows schedules, kernels and files; it must not know how trials are made.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from nbcomp.errors import NbcompError, ScheduleError
from nbcomp.loop.grammar import Kernel
from nbcomp.machine import Machine
from nbcomp.record import remark
from nbcomp.schedule.canonical import Canonical, canonical
from nbcomp.schedule.decisions import Value
from nbcomp.schedule.language import Step, from_json
from nbcomp.version import VERSION

# Windows has no such locks: there a line is one write at the end of the file.
_locks: Any = import_module("fcntl") if os.name == "posix" else None

FORMAT = 1  # of a line
VARIABLE = "NBCOMP_RECORD"
UNSURE = 0.9  # of the default's time: what an unfinished search has found must be below


@dataclass(frozen=True)
class Entry:
    """One line: a schedule of a kernel, and how long the kernel took with it.

    kernel: the digest of its canonical form, in whose names the `schedule` (its JSON) is; name:
    what it was called.  target: the CPU.  seconds: of a run, None where there was none (`note` says
    why).  default: of a run with the default schedule, in the same session.  verdict: the end of a
    search; then this is what to use (no steps: the default schedule).  decisions: what was decided
    where, for the search to learn from.  when: in UTC.
    """

    kernel: str
    target: str
    schedule: str
    seconds: float | None = None
    default: float | None = None
    verdict: bool = False
    note: str = ""
    name: str = ""
    when: str = ""
    decisions: Mapping[str, Value] = field(default_factory=dict)
    version: str = VERSION
    format: int = FORMAT

    @property
    def share(self) -> float:
        """Of the default's time."""
        if self.seconds is None or not self.default:
            return float("inf")
        return self.seconds / self.default

    def line(self) -> str:
        """As it is written, without its end."""
        return json.dumps(asdict(self), ensure_ascii=False, separators=(",", ":"))


def read(line: str) -> Entry:
    """The entry of a line; ValueError says what is wrong with it."""
    data = json.loads(line)
    if not isinstance(data, dict) or not {"kernel", "target", "schedule"} <= data.keys():
        raise ValueError("no entry of a record")
    if data.get("format") != FORMAT:
        raise ValueError(f"format {data.get('format')}; this version reads {FORMAT}")
    try:
        entry = Entry(**data)
    except TypeError:
        raise ValueError("an entry with other fields") from None
    texts = (entry.kernel, entry.target, entry.schedule, entry.note, entry.name, entry.version)
    numbers = (entry.seconds, entry.default)
    if not all(isinstance(t, str) for t in texts) or not isinstance(entry.decisions, dict):
        raise ValueError("an entry with fields of other types")
    if not all(n is None or (isinstance(n, int | float) and n > 0) for n in numbers):
        raise ValueError("an entry whose times are no times")
    return entry


def target_of(machine: Machine) -> str:
    """A CPU in the words of the record: what runs alike on it."""
    return f"{machine.name}, {8 * machine.vector_bytes}-bit vectors, {machine.cores} cores"


# ---------------------------------------------------------------------------------------- files


class Database:
    """A record: a file of entries, which need not be there yet.

    problems: what could not be read, by line.  Reading is cheap when nothing has changed.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).expanduser()
        self.problems: tuple[str, ...] = ()
        self._state: tuple[int, int] = (0, 0)  # of the file when it was read
        self._lines: dict[str, list[tuple[int, str]]] = {}  # by kernel, unread

    def __len__(self) -> int:
        self._refresh()
        return sum(map(len, self._lines.values()))

    def __repr__(self) -> str:
        return f"<nbcomp record {self.path}: {len(self)} entries>"

    def entries(self, kernel: str | None = None) -> list[Entry]:
        """The entries, or those of one kernel, in the order they were written."""
        self._refresh()
        wanted = [kernel] if kernel is not None else list(self._lines)
        pairs = sorted(pair for k in wanted for pair in self._lines.get(k, ()))
        return [entry for pair in pairs if (entry := self._entry(*pair)) is not None]

    def _entry(self, number: int, line: str) -> Entry | None:
        """An entry; None, and a problem more, where a line is none."""
        try:
            return read(line)
        except ValueError as error:
            self._problem(number, str(error))
            return None

    def append(self, *entries: Entry) -> None:
        """Write entries at the end, durably.  Raises NbcompError where that cannot be done: folders
        are made for the user's own record only."""
        data = "".join(f"{entry.line()}\n" for entry in entries).encode()
        try:
            if self.path == own_path():
                self.path.parent.mkdir(parents=True, exist_ok=True)
            with open(self.path, "ab") as file:
                _locked(file)
                if _torn(self.path):  # somebody was killed in the middle of a line
                    data = b"\n" + data
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise self._unwritable(error) from None

    def check(self) -> None:
        """Raise NbcompError unless entries can be written here."""
        self.append()

    def _unwritable(self, error: OSError) -> NbcompError:
        return NbcompError(
            f"the record of tuning cannot be written to {self.path}: {error.strerror or error}",
            hint=f"name another file (record=, --record or the variable {VARIABLE})",
        )

    @property
    def skipped(self) -> str:
        """What could not be read, in words; empty if there is nothing."""
        if not self.problems:
            return ""
        what, more = "; ".join(self.problems[:3]), len(self.problems) - 3
        rest = f" and {more} more" if more > 0 else ""
        return f"lines of {self.path.name} that cannot be read are skipped: {what}{rest}"

    def merge(self, other: str | Path | Database) -> int:
        """Take over what another record has and this one has not; how many entries that were.

        Raises NbcompError where there is no such file.
        """
        source = other if isinstance(other, Database) else Database(other)
        if not source.path.exists():
            raise NbcompError(f"there is no record {source.path}")
        known = {entry.line() for entry in self.entries()}
        new = [entry for entry in source.entries() if entry.line() not in known]
        if new:
            self.append(*new)
        return len(new)

    def export(self, path: str | Path, kernels: Iterable[str] | None = None) -> int:
        """Write the best schedules, one line for each kernel and CPU, to a file of their own.

        kernels: digests; all, if not given.  The number of lines.  What the file had is replaced.
        """
        chosen = None if kernels is None else set(kernels)
        pairs = dict.fromkeys((e.kernel, e.target) for e in self.entries())
        found = [self.best(k, t) for k, t in pairs if chosen is None or k in chosen]
        kept = [replace(e, verdict=True, decisions={}) for e in found if e is not None]
        target = Path(path).expanduser()
        try:
            target.write_text("".join(f"{e.line()}\n" for e in kept), encoding="utf-8")
        except OSError as error:
            raise Database(target)._unwritable(error) from None
        return len(kept)

    def best(self, kernel: str, target: str) -> Entry | None:
        """What to use for a kernel on a CPU: the last verdict, or something clearly better that a
        search has found since which did not come to its end."""
        self._refresh()
        after: list[Entry] = []
        for number, line in reversed(self._lines.get(kernel, ())):
            entry = self._entry(number, line)
            if entry is None or (entry.target, entry.version) != (target, VERSION):
                continue
            after.append(entry)
            if entry.verdict:
                break
        found: Entry | None = None
        for entry in reversed(after):
            bar = UNSURE * (found.share if found else 1.0)
            if entry.verdict or entry.share < bar:
                found = entry
        return found

    def others(self, kernel: str, target: str) -> str:
        """What is known of a kernel that does not count here, and why; empty if nothing is."""
        entries = self.entries(kernel)
        versions = sorted({e.version for e in entries if e.target == target} - {VERSION})
        if versions:
            return f"made by version {', '.join(versions)}; this is {VERSION}"
        cpus = sorted({e.target for e in entries} - {target})
        return f"made on {'; '.join(cpus)}; this is {target}" if cpus else ""

    def _refresh(self) -> None:
        """Read the file anew if it is not as it was."""
        try:
            stat = os.stat(self.path)
            state = (stat.st_mtime_ns, stat.st_size)
            if state == self._state:
                return
            text = self.path.read_bytes().decode("utf-8", errors="replace")
        except FileNotFoundError:
            self._state, self._lines, self.problems = (0, 0), {}, ()
            return
        except OSError as error:
            self.problems = (str(error),)
            return
        self._state, self._lines, self.problems = state, {}, ()
        for number, line in enumerate(text.split("\n"), 1):
            if line.startswith(_START) and line.endswith("}"):
                kernel = line[len(_START) :].split('"', 1)[0]
                self._lines.setdefault(kernel, []).append((number, line))
            elif line.strip():
                self._problem(number, "not a line of a record")

    def _problem(self, number: int, why: str) -> None:
        words = f"line {number}: {why}"
        if words not in self.problems:
            self.problems = (*self.problems, words)


_START = '{"kernel":"'  # of every line, so that most need not be read


def _locked(file: IO[bytes]) -> None:
    """Wait for the file to be ours until it is closed."""
    if _locks is not None:
        _locks.flock(file.fileno(), _locks.LOCK_EX)


def _torn(path: Path) -> bool:
    """Whether a file does not end at the end of a line."""
    with open(path, "rb") as file:
        if not file.seek(0, os.SEEK_END):
            return False
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"


# -------------------------------------------------------------------------------------- in use


def default_path() -> Path | None:
    """Where the record is unless one is named: `NBCOMP_RECORD` ("off": nowhere), else the user's
    cache."""
    named = os.environ.get(VARIABLE, "")
    if named:
        return None if named.lower() == "off" else Path(named)
    return own_path()


def own_path() -> Path:
    """The record in the user's cache."""
    if sys.platform == "win32":
        cache = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif sys.platform == "darwin":
        cache = Path.home() / "Library" / "Caches"
    else:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "nbcomp" / "tuning.jsonl"


_used: dict[Path, Database] = {}  # those asked when something is compiled, the last one first


def use_record(record: str | Path | Database) -> Database:
    """Look for schedules in this record too, from now on, before all others.

    A file that is committed beside a notebook is used so: `nbcomp.use_record("tuned.jsonl")`.
    """
    database = record if isinstance(record, Database) else Database(record)
    known = _used.pop(database.path, database)
    rest = dict(_used)
    _used.clear()
    _used.update({known.path: known, **rest})
    return known


def databases() -> Iterator[Database]:
    """Those that are looked at, in order."""
    yield from tuple(_used.values())
    path = default_path()
    if path is not None and path not in _used:
        known = _defaults.setdefault(path, Database(path))
        yield known


_defaults: dict[Path, Database] = {}


Played = tuple[tuple[Step, Kernel], ...]


def recorded(kernel: Kernel, machine: Machine) -> Played | None:
    """The steps of the best schedule that is recorded for a kernel like this, each with the kernel
    after it; None if there is none to use.

    Says in remarks what is used, and what is there but cannot be.
    """
    known: Canonical | None = None
    target = target_of(machine)
    for database in databases():
        entry, other = None, ""
        if len(database):
            known = known or canonical(kernel)
            entry = database.best(known.digest, target)
            other = "" if entry else database.others(known.digest, target)
        _report(database, kernel)
        if known and entry:
            return _played(entry, known, kernel)
        if other:
            reason = f"the record has schedules for {kernel.name}, {other}"
            remark("missed", "tuned", reason, kernel.location, "tune it again here")
    return None


def _played(entry: Entry, known: Canonical, kernel: Kernel) -> Played | None:
    """The schedule of an entry on the kernel, if it is not the default one and legal."""
    try:
        played = tuple(known.own(from_json(entry.schedule)).play(kernel))
    except ScheduleError as error:
        reason = f"the schedule recorded for {kernel.name} does not fit: {error}"
        remark("missed", "tuned", reason, kernel.location)
        return None
    if not played:
        return None
    reason = f"{kernel.name} runs by a schedule that tuning found, {times_words(entry.share)}"
    remark("applied", "tuned", reason, kernel.location)
    return played


def times_words(share: float) -> str:
    """A share of the default's time in words."""
    return f"{1 / share:.2f} times as fast as by default" if share < 1 else "as fast as by default"


def _report(database: Database, kernel: Kernel) -> None:
    """Say that lines were skipped."""
    if database.skipped:
        remark("missed", "tuned", database.skipped, kernel.location)
