"""What the assembly languages of the targets mean, as far as a reader of a listing needs it.

One `Dialect` each: how comments and registers look, which operand is the destination, what
transfers control, what belongs to a function's frame, and what kind of work an instruction does.
Tables of patterns only, as text, since most are never needed; `assembly` reads with them.  The
kinds follow the vendors' manuals: Intel SDM vol. 2, Arm ARM C6–C8, RISC-V V 1.0, the WebAssembly
and PTX specifications.
"""

from __future__ import annotations

from dataclasses import dataclass

# What an instruction does, in words; the order is that of tables.
KINDS = {
    "load": "reads memory",
    "store": "writes memory",
    "fma": "multiplies and adds, rounded once",
    "mul": "multiplies",
    "add": "adds or subtracts",
    "div": "divides or takes a root",
    "compare": "compares, or picks the larger or smaller",
    "convert": "converts, rounds, or scales by a power of two",
    "logic": "works on bits",
    "shuffle": "moves elements between lanes",
    "mask": "works on masks of lanes",
    "move": "copies a register, or sets it to a constant",
    "scalar": "counts and computes addresses, one number at a time",
    "branch": "goes on elsewhere",
    "call": "calls a function",
    "other": "anything else",
}

NEVER = r"$."


@dataclass(frozen=True, eq=False)
class Dialect:
    """One assembly language.

    kinds: (kind, mnemonics of that kind), the first that fits; memory operands make a "move" a
    load or a store.  register: in an operand.  aliases: (pattern, whole register), for names of
    parts.  widths: (what an operand of it looks like, bits).  branch, jump: mnemonics that may, or
    will, go to a label.  frame: whole instructions that only set up or leave a function.  stack: an
    operand in the function's own frame.  pointer: whole instructions that make an address there.
    constant: an operand that is a number of the compiler's.
    updates: mnemonics whose destination is read, too.  compares: mnemonics that have none, and set
    the flags only.  flags: mnemonics that set them, too.  conditional: mnemonics that read them.
    arguments: registers a call reads.
    data: instructions on the program's numbers, which are not just counting and addresses.  mode:
    mnemonics that compute nothing and say how others work.
    """

    name: str
    comment: str
    kinds: tuple[tuple[str, str], ...]
    register: str
    memory: str
    branch: str
    jump: str
    leave: str
    data: str
    aliases: tuple[tuple[str, str], ...] = ()
    widths: tuple[tuple[str, int], ...] = ()
    frame: str = NEVER
    stack: str = NEVER
    pointer: str = NEVER
    constant: str = NEVER
    updates: str = NEVER
    compares: str = NEVER
    flags: str = NEVER
    conditional: str = NEVER
    mode: str = NEVER
    arguments: tuple[str, ...] = ()
    destination_last: bool = False
    nested: bool = False  # control flow is blocks of the text, operands are on a stack


def _kinds(**patterns: str) -> tuple[tuple[str, str], ...]:
    return tuple((kind, rf"(?:{text})$") for kind, text in patterns.items())


def _pairs(*pairs: tuple[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple((rf"(?:{pattern})$", whole) for pattern, whole in pairs)


X86 = Dialect(
    name="x86-64",
    comment="#",
    kinds=_kinds(
        call=r"callq?",
        branch=r"j\w+|retq?|ud2",
        fma=r"vfn?m(?:add|sub)\w+|vpdp\w+|vdpbf16ps|tdp\w+",
        div=r"v?(?:div|sqrt)[ps][sdh]|v?r(?:cp|sqrt)\w*|i?div[bwlq]",
        mul=r"v?mul[ps][sdh]|v?pmul\w+|v?pmadd\w+|i?mul[bwlq]?",
        mask=r"k(?:mov|and|or|xor|xnor|not|shift|unpck|add|test)\w+|v?p?movmsk\w+|vpmov[bwdq]2m"
        r"|vpmovm2[bwdq]",
        compare=r"v?(?:min|max|cmp\w*|u?comi)[ps][sdh]|v?p(?:cmp|min|max|test)\w*|v?p?test\w+"
        r"|vfpclass\w+|(?:cmp|test)[bwlq]|set\w+|cmov\w+",
        convert=r"v?cvt\w+|v?p?mov[sz]x\w+|v?round\w+|vrndscale\w+|vget(?:exp|mant)\w+"
        r"|vscalef\w+|vfixupimm\w+|vreduce\w+|vpmovu?s?[wdq][bwd]|mov[sz][bwl][wlq]"
        r"|c[bwldq]t[wldqo]\w*",
        shuffle=r"v?p?(?:shuf|unpck|perm|align|blend|insr|extr|broadcast|compress|expand)\w+"
        r"|v?(?:extract|insert)\w+|v?pack\w+|v?mov[sl][hl]dup|v?movddup|v?mov(?:hl|lh)ps"
        r"|v?ps[lr]ldq",
        logic=r"v?(?:andn?|x?or)p[sd]|v?p(?:andn?|x?or)[dq]?|vpternlog\w+|v?ps(?:ll|rl|ra)\w+"
        r"|vpro[lr]\w+|vplzcnt\w+|vpopcnt\w+|v?pabs\w+"
        r"|(?:andn?|x?or|not|sh[lr]|sa[lr]|ro[lr]|bt|bzhi|bextr|popcnt|[lt]zcnt|bs[rf])[bwlq]?"
        r"|(?:shlx|shrx|sarx|rorx|shld|shrd)[lq]",
        add=r"v?h?(?:add|sub|addsub)[ps][sdh]|v?p(?:add|sub|avg|sad|hadd)\w+"
        r"|(?:add|sub|adc|sbb|inc|dec|neg|lea)[bwlq]",
        move=r"v?mov\w+|vmaskmov\w+|vp?maskmov\w+|v?p?gather\w+|vp?scatter\w+|v?lddqu"
        r"|tileloadd|tilestored"
        r"|(?:push|pop)q?|xchg[bwlq]|vzero\w+",
    ),
    register=r"%[a-z]+\d*[dwb]?\b",
    memory=r"-?\w*\(|\.?[A-Za-z_]",
    branch=r"j\w+$",
    jump=r"jmpq?$",
    leave=r"retq?$|ud2$",
    data=r"%[xyz]mm|%k\d",
    aliases=_pairs(
        *((rf"%[er]?{s}x|%{s}[lh]", f"%r{s}x") for s in "abcd"),
        *((rf"%[er]?{s}l?", f"%r{s}") for s in ("si", "di", "bp", "sp")),
        (r"%(r\d+)[dwb]", r"%\1"),
        (r"%[xyz]mm(\d+)", r"%v\1"),
    ),
    widths=(("%zmm", 512), ("%ymm", 256), ("%xmm", 128)),
    frame=(
        r"(?:push|pop)q %r\w+$|(?:sub|add)q \$-?\d+, %rsp|andq \$-\d+, %rsp|movq %rsp, %rbp"
        r"|movq %rbp, %rsp|leaq -?\d+\(%rbp\), %rsp|vzeroupper|retq?$"
    ),
    stack=r"-?\d*\(%r[bs]p\)(?: \{.*)?$",
    constant=r"\$?\.LCPI\d+_\d+",
    updates=(
        r"vfn?m\w+|vpdp\w+|vdpbf16ps|tdp\w+|vfixupimm\w+|vperm[it]2\w+|vpternlog\w+|cmov\w+"
        r"|(?!v|mov|lea|cvt|set|pmov|p?shuf[dlh]|sqrt|round|pabs|extract|pextr|push|pop|[lt]zcnt|k)"
        r"\w+"
    ),
    compares=r"v?u?comi|cmp[bwlq]$|test[bwlq]$|v?ptest|vtest|kortest|ktest",
    flags=r"(?:add|sub|adc|sbb|inc|dec|neg|and|or|xor|sh[lr]|sa[lr]|bt|imul)[bwlq]$",
    conditional=r"set\w+$|cmov\w+$|j(?!mp)\w+$|adc[bwlq]$|sbb[bwlq]$",
    arguments=(
        *("%rdi", "%rsi", "%rdx", "%rcx", "%r8", "%r9"),
        *(f"%v{n}" for n in range(8)),
    ),
    destination_last=True,
)

ARM = Dialect(
    name="AArch64",
    comment="//",
    kinds=_kinds(
        call=r"blr?",
        branch=r"b|b\.\w+|bc\.\w+|br|ret|cbn?z|tbn?z",
        load=r"ld\w*",
        store=r"st\w*",
        fma=r"f(?:n?ml[as]|n?m(?:add|sub)|mad|msb|nmad|nmsb)\w*|ml[as]|mad|msb|m(?:add|sub)",
        div=r"f?s?u?div\w*|f?r?sqrt\w*|frecp\w*",
        mul=r"fn?mul\w*|[su]?mul\w*|pmul\w*",
        mask=r"p(?:true|false|first|next|test)s?|while\w+|brk\w+|punpk\w+|pfirst",
        compare=r"fc?cmp\w*|fc\w+|cm\w+|cc?mp|cmn|tst|f?max\w*|f?min\w*|[su](?:max|min)\w*"
        r"|cs(?:el|et|etm|inc|inv|neg)|fac\w+",
        convert=r"[su]cvtf|fcvt\w*|frint\w*|[su]xt[bwhl]\w*|xtn2?|[su]?qxtn\w*|[su]unpk\w+|fscale|fexpa|flogb",
        shuffle=r"ext|dup|tb[lx]|zip\d?|uzp\d?|trn\d?|rev\w*|ins|[su]mov|sel|splice|compact"
        r"|insr|last\w|index",
        logic=r"and|or[rn]|eor|bic|bi[tf]|bsl|mvn|ls[lr]\w*|as[rl]\w*|[su]?sh[lr]l?\w*|[us]sra"
        r"|ror|sli|sri|[us]bf\w*|bf\w+|cl[zs]|cnt|rbit|not|ands|bics",
        add=r"f?add\w*|f?sub\w*|f?neg\w*|fabd|fabs|abs|[su]?addl?[vp]\w*|adc|sbc|inc\w|dec\w|cnt[bhwd]"
        r"|adrp?|addvl|rdvl|addpl",
        move=r"f?mov\w*|mvni|movprfx|cpy",
    ),
    register=r"\b(?:[xwvqdshbzp]\d+|[xw]zr|w?sp)\b",
    memory=r"\[",
    branch=r"b$|b\.\w+$|cbn?z$|tbn?z$",
    jump=r"b$",
    leave=r"ret$|br$",
    data=r"\b[vqdshzp]\d",
    aliases=_pairs((r"w(\d+)", r"x\1"), (r"[qdshbz](\d+)", r"v\1"), (r"wsp", "sp")),
    widths=((r"z\d+", -1), (r"v\d+\.|q\d+", 128)),
    frame=(
        r"st[pr] .*\[sp, #-\d+\]!|ld[pr] .*\[sp\], #\d+|(?:add|sub) sp, sp, .*|ret$"
        r"|(?:st|ld)[pr] (?:[xd](?:8|9|1\d|2\d|30), )+\[sp(?:, #\d+)?\]|mov x29, sp|add x29, sp, .*"
    ),
    stack=r"\[sp(?:, #-?\d+)?(?:, mul vl)?\]$",
    pointer=r"add x\d+, sp, .*|addvl x\d+, sp, .*",
    constant=r".*\.LCPI\d+_\d+|#-?\d",
    compares=r"fc?cmpe?$|cc?mp$|cmn$|tst$",
    flags=r"adds$|subs$|ands$|bics$|adcs$|sbcs$|negs$|while\w+$|ptest$|cmp\w+$",
    conditional=r"b\.\w+$|bc\.\w+$|f?cs\w+$|cin[cv]$|cneg$|ccmp$|fccmp$|ccmn$|adcs?$|sbcs?$",
    updates=r"f?n?ml[as]\w*|bi[tf]|bsl|movk|ins|tbx|[us]sra|sli|sri|fexpa",
    arguments=(*(f"x{n}" for n in range(8)), *(f"v{n}" for n in range(8))),
)

RISCV = Dialect(
    name="RISC-V",
    comment="#",
    kinds=_kinds(
        call=r"call|jal|jalr",
        branch=r"b\w+|j|jr|ret|tail",
        load=r"l[bhwd]u?|fl[hwd]|vl\d?\w*e?\d*\w*\.v|vlux\w+|vlox\w+",
        store=r"s[bhwd]|fs[hwd]|vs\d?r?\w*\d*\.v|vsux\w+|vsox\w+",
        fma=r"vf?n?m(?:acc|sac|add|sub)\.\w+|fn?m(?:add|sub)\.\w",
        div=r"v?f?r?div\w*\.?\w*|v?fr?sqrt\w*\.\w+|rem\w*|vrem\w*\.\w+",
        mul=r"v?f?w?mul\w*\.?\w*",
        mask=r"vm(?:and|or|xor|nand|nor|xnor|andn|orn|set|clr|sof|sif|sbf|mv|not)\w*\.m+"
        r"|vcpop\.m|vfirst\.m|vid\.v|viota\.m",
        compare=r"vmf?s?\w+\.v[vxif]\w?|vfclass\.v|vf?(?:max|min)u?\.\w+|f(?:max|min|eq|l[te]|g[te])\.\w"
        r"|s(?:lt|eqz|nez|gtz)\w*|max|min",
        convert=r"v?f\w*cvt\w*\.\S+|v[sz]ext\.\w+|vn(?:sr[al]|cvt)\S*|sext\.\w|zext\.\w",
        shuffle=r"vslide\w+\.\w+|vrgather\w*\.\w+|vmerge\.\w+|vfmerge\.\w+|vcompress\.\w+"
        r"|vf?mv\.[fxs]\.\w|v?fmv\.\w\.\w",
        logic=r"v?(?:and|or|xor|sll|srl|sra|not)[iw]*\.?\w*|vfsgn\w+\.\w+|fsgnj\w*\.\w|lui",
        add=r"v?f?r?(?:add|sub|neg|abs)[iw]*\.?\w*|vfw?red\w+\.\w+|vred\w+\.\w+|sh\dadd",
        move=r"v?f?mv\w*\.?\S*|li|la|auipc",
        other=r"vset\w+|csr\w+|fsrm\w*|fence\S*",
    ),
    register=r"\b(?:[astvx]\d+|f[ast]\d+|zero|ra|sp|gp|tp)\b",
    memory=r"-?\d*\(",
    branch=r"b\w+$|j$",
    jump=r"j$",
    leave=r"ret$|tail$|jr$",
    data=r"[vf]",
    widths=((r"v\d+$", -1),),
    frame=r"addi sp, sp, .*|f?[sl]d f?(?:s\d+|ra), -?\d+\(sp\)|ret$",
    stack=r"-?\d*\(sp\)$",
    pointer=r"addi? [ast]\d+, (?:sp, .*|.*, sp$)",
    constant=r".*\.LCPI\d+_\d+|-?\d+$",
    updates=r"vfn?m(?:acc|sac|add|sub)\.\w+|vslideup\w*\.\w+",
    mode=r"vset\w+|fsrm\w*|csr\w+",
    arguments=(*(f"a{n}" for n in range(8)), *(f"fa{n}" for n in range(8))),
)

WASM = Dialect(
    name="WebAssembly",
    comment="#",
    kinds=_kinds(
        call=r"call|call_indirect",
        branch=r"br|br_if|br_table|return|loop|block|if|else|end_\w+|end|unreachable",
        load=r"\w+\.load\w*",
        store=r"\w+\.store\w*",
        fma=r"\w+\.relaxed_n?madd",
        div=r"\w+\.(?:div|sqrt|rem)\w*",
        mul=r"\w+\.(?:ext)?mul\w*",
        compare=r"\w+\.(?:p?min|p?max|eqz?|ne|[lg][te])(?:_\w)?",
        convert=r"\w+\.(?:convert|trunc|nearest|floor|ceil|demote|promote|wrap|extend)\w*",
        shuffle=r"\w+\.(?:shuffle|swizzle|splat|extract_lane|replace_lane)\w*|\w+\.narrow\w*",
        mask=r"\w+\.(?:bitmask|all_true|any_true|bitselect)",
        logic=r"\w+\.(?:and|andnot|or|xor|not|shl|shr_\w|rot[lr]|clz|ctz|popcnt)",
        add=r"\w+\.(?:add|sub|neg|abs)\w*",
        move=r"local\.\w+|global\.\w+|\w+\.const|drop|(?:\w+\.)?select|\w+\.reinterpret\w*",
    ),
    register=NEVER,
    memory=NEVER,
    branch=NEVER,
    jump=NEVER,
    leave=NEVER,
    data=r"f32|f64|v128|i\d+x\d",
    nested=True,
)

PTX = Dialect(
    name="PTX",
    comment="//",
    kinds=_kinds(
        call=r"call\S*",
        branch=r"bra\S*|ret\S*|exit",
        load=r"ldu?\.\S+",
        store=r"st\.\S+",
        fma=r"fma\.\S+|mad\.\S+",
        div=r"div\.\S+|sqrt\.\S+|rcp\.\S+|rsqrt\.\S+|rem\.\S+",
        mul=r"mul\S*",
        compare=r"setp?\.\S+|min\.\S+|max\.\S+|selp\.\S+|testp\.\S+",
        convert=r"cvt\.\S+|ex2\.\S+|lg2\.\S+",
        shuffle=r"prmt\.\S+|shfl\.\S+",
        logic=r"(?:and|or|xor|not|shl|shr|lop3|copysign|bfe|bfi|popc|clz|shf)\.\S+",
        add=r"(?:add|sub|neg|abs)\.\S+",
        move=r"mov\.\S+|cvta\.\S+",
    ),
    register=r"%\w+",
    memory=r"\[",
    branch=r"bra\S*$",
    jump=r"bra\.uni$",
    leave=r"ret\S*$|exit$",
    data=r".*\.f(?:16|32|64)",
    constant=r"0[fd][0-9a-fA-F]+|-?\d+$",
)


def dialect_of(triple: str) -> Dialect:
    """The assembly language of an LLVM triple.  Raises KeyError for one that is not read."""
    by_name = {"x86_64": X86, "aarch64": ARM, "riscv64": RISCV, "wasm32": WASM, "nvptx64": PTX}
    return by_name[triple.split("-")[0]]
