"""Hover help: a sentence, and where it is from, for every word of every level.

Operators explain themselves (their docstring, the NumPy function they stand for); loop constructs,
LLVM instructions and the machine instructions of each assembly language are looked up in the data
files beside this one.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files

from nbcomp.graph.op import REGISTRY, Op
from nbcomp.loop.intrinsics import INTRINSICS
from nbcomp.origin import Construct
from nbcomp.target.llvm.dialects import KINDS

# The data file of each assembly language, by the names of `nbcomp.target.llvm.dialects`.
MACHINES = {
    "x86-64": "x86",
    "AArch64": "aarch64",
    "RISC-V": "riscv",
    "WebAssembly": "wasm",
    "PTX": "ptx",
}


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
    """What a word of the loop IR means: of its grammar, a scalar function, which is the operator of
    that name, or an instruction that does all of a loop."""
    entries, source, _ = _table("loop")
    if word in entries:
        return Help(entries[word], source)
    return machine(_FORM.sub("", word)) if word in INTRINSICS else operator(word)


_FORM = re.compile(r"(_su)?(_256)?$")  # the signed operand first, half a register


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
def machine(mnemonic: str, language: str = "x86-64") -> Help | None:
    """What a machine instruction does."""
    name = MACHINES[language]
    _, source, types = _table(name)
    for pattern, sentence in _patterns(name):
        found = pattern.fullmatch(mnemonic)
        if found:
            first = next((g for g in found.groups() if g), "")
            return Help(sentence.replace("{1}", types.get(first, first or "values")), source)
    return None


def notation(language: str) -> str:
    """What the keys of an assembly language begin with: "asm" for that of x86-64."""
    return "asm" if language in ("", "x86-64") else MACHINES[language]


@cache
def _patterns(name: str) -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple((re.compile(key), text) for key, text in _table(name)[0].items())


def construct_help(names: Iterable[str]) -> dict[str, Help]:
    """What the compiler's own constructs are for; keys are `construct:tail`."""
    known = {str(c): Help(c.sentence, "nbcomp/origin.py") for c in Construct}
    return {f"construct:{name}": known[name] for name in names if name in known}


def kind_help(names: Iterable[str]) -> dict[str, Help]:
    """What kinds of machine instructions do; keys are `kind:fma`."""
    source = "nbcomp/target/llvm/dialects.py"
    return {f"kind:{name}": Help(f"Each {KINDS[name]}.", source) for name in names if name in KINDS}


# ------------------------------------------------------------------------------ tokens of a text

_COMMENT = re.compile(r"#.*|//(?! (?:streaming|contract)\b).*")
_WORD = re.compile(r"(?<![\w.])[A-Za-z_][\w.]*")
_OPCODE = re.compile(  # labels are not indented
    r"^[ \t]+(?:%\S+ = )?(?:(?:tail|musttail|notail) )?([a-z]+)|^(define|declare)\b"
    r"|@(llvm(?:\.[a-z][\w.]*)+)",
    re.MULTILINE,
)
_MNEMONIC = re.compile(r"^[ \t]+(?:@!?%\w+[ \t]+)?([a-z][\w.]*)(?:[\s;]|$)", re.MULTILINE)


def loop_tokens(text: str) -> set[str]:
    """Words of the loop IR in a text, names of the user's among them."""
    return set(_WORD.findall(_COMMENT.sub("", text)))


def llvm_tokens(text: str) -> set[str]:
    """Opcodes and intrinsics in a text."""
    return {name for names in _OPCODE.findall(text) for name in names if name}


def machine_tokens(text: str) -> set[str]:
    """Mnemonics in a text."""
    return set(_MNEMONIC.findall(text))


Lookup = tuple[Callable[[str], set[str]], Callable[[str], Help | None]]
# For each notation its words in a text, and what is known of one.
NOTATIONS: dict[str, Lookup] = {
    "loop": (loop_tokens, loop),
    "llvm": (llvm_tokens, llvm),
    **{notation(name): (machine_tokens, partial(machine, language=name)) for name in MACHINES},
}


def help_for(operators: Iterable[str], texts: Iterable[tuple[str, str]]) -> dict[str, Help]:
    """The help of operators, and of the words of texts given as (notation, text).

    Keys are `op:matmul`, `loop:parallel`, `llvm:fmul`, `llvm:llvm.fma`, `asm:vaddps`,
    `aarch64:fmla`.
    """
    found: dict[str, Help] = {}
    for name in operators:
        if (known := operator(name)) is not None:
            found[f"op:{name}"] = known
    words: dict[str, set[str]] = {}
    for name, text in texts:
        words.setdefault(name, set()).update(NOTATIONS[name][0](text))
    for name, tokens in words.items():
        for token in sorted(tokens):
            if (known := NOTATIONS[name][1](token)) is not None:
                found[f"{name}:{token}"] = known
    return found
