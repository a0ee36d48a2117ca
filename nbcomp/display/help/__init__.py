"""Hover help: a sentence, and where it is from, for every word of every level.

Operators explain themselves (their docstring, the NumPy function they stand for); loop constructs,
LLVM instructions and machine instructions are looked up in the data files beside this one.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from nbcomp.graph.op import REGISTRY, Op
from nbcomp.origin import Construct

MACHINES = ("x86", "aarch64")


@dataclass(frozen=True)
class Help:
    """One sentence, and where it can be looked up."""

    text: str
    source: str


@cache
def _table(name: str) -> tuple[dict[str, str], str, dict[str, str]]:
    """A data file: its entries, its source, and what its suffixes stand for."""
    data = tomllib.loads(files("nbcomp.display.help").joinpath(f"{name}.toml").read_text("utf-8"))
    return data["tokens"], data["source"], data.get("types", {})


def operator(name: str) -> Help | None:
    """What an operator of the graph computes."""
    kind = REGISTRY.get(name)
    return _operator(name, kind) if kind else None


def _operator(name: str, kind: type[Op]) -> Help:
    said = (kind.__doc__ or "").strip().splitlines()
    own = said[0] if said and not said[0].startswith(f"{kind.__name__}(") else ""
    known = [f for f in kind.numpy if getattr(f, "__name__", "")]
    source = f"numpy.{known[0].__name__}" if known else f"nbcomp, operator {name}"
    numpys = (known[0].__doc__ or "").strip().split("\n\n") if known else []
    # A ufunc's docstring begins with its signature.
    summary = next((" ".join(p.split()) for p in numpys if p and "(x" not in p), "")
    said_so = own or summary or f"The operator {name}"
    return Help(said_so if said_so.endswith(".") else f"{said_so}.", source)


def loop(word: str) -> Help | None:
    """What a word of the loop IR means."""
    entries, source, _ = _table("loop")
    return Help(entries[word], source) if word in entries else None


@cache
def llvm(opcode: str) -> Help | None:
    """What an LLVM instruction or intrinsic does; an intrinsic's types do not matter."""
    entries, source, _ = _table("llvm")
    name = opcode
    while name:
        if name in entries:
            return Help(entries[name], source)
        name = name.rpartition(".")[0]
    return None


@cache
def machine(mnemonic: str) -> Help | None:
    """What a machine instruction does, of x86 or AArch64."""
    for name in MACHINES:
        _, source, types = _table(name)
        for pattern, sentence in _patterns(name):
            found = pattern.fullmatch(mnemonic)
            if found:
                first = next((g for g in found.groups() if g), "")
                return Help(sentence.replace("{1}", types.get(first, first or "values")), source)
    return None


@cache
def _patterns(name: str) -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple((re.compile(key), text) for key, text in _table(name)[0].items())


def construct_help(names: Iterable[str]) -> dict[str, Help]:
    """What the compiler's own constructs are for; keys are `construct:tail`."""
    known = {str(c): Help(c.sentence, "nbcomp/origin.py") for c in Construct}
    return {f"construct:{name}": known[name] for name in names if name in known}


# ------------------------------------------------------------------------------ tokens of a text

_WORD = re.compile(r"\b[a-z]+\b")
_OPCODE = re.compile(  # labels are not indented
    r"^[ \t]+(?:%\S+ = )?(?:(?:tail|musttail|notail) )?([a-z]+)|^(define|declare)\b"
    r"|@(llvm(?:\.[a-z][\w.]*)+)",
    re.MULTILINE,
)
_MNEMONIC = re.compile(r"^[ \t]+([a-z][a-z0-9.]*)(?:\s|$)", re.MULTILINE)


def loop_tokens(text: str) -> set[str]:
    """Words of the loop IR in a text."""
    code = re.sub(r"#.*", "", text)
    return {word for word in _WORD.findall(code) if loop(word)}


def llvm_tokens(text: str) -> set[str]:
    """Opcodes and intrinsics in a text."""
    return {name for names in _OPCODE.findall(text) for name in names if name}


def machine_tokens(text: str) -> set[str]:
    """Mnemonics in a text."""
    return set(_MNEMONIC.findall(text))


LEVELS: dict[str, tuple[Callable[[str], set[str]], Callable[[str], Help | None], str]] = {
    "loop": (loop_tokens, loop, "loop"),
    "llvm": (llvm_tokens, llvm, "llvm"),
    "asm": (machine_tokens, machine, "asm"),
}


def help_for(operators: Iterable[str], texts: Iterable[tuple[str, str]]) -> dict[str, Help]:
    """The help of operators, and of the words of texts given as (level, text).

    Keys are `op:matmul`, `loop:parallel`, `llvm:fmul`, `llvm:llvm.fma`, `asm:vaddps`.
    """
    found: dict[str, Help] = {}
    for name in operators:
        if (known := operator(name)) is not None:
            found[f"op:{name}"] = known
    for level, text in texts:
        tokens, lookup, prefix = LEVELS[level]
        for token in sorted(tokens(text)):
            if (known := lookup(token)) is not None:
                found[f"{prefix}:{token}"] = known
    return found
