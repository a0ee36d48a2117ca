"""Regression cases for nbcomp, distilled from public bug reports about other array compilers.

Every function below was written for this file; none is copied from a report.  `expect`
is derived by hand (or with plain Python / math), never by calling the function under
test, so running this file checks that NumPy really gives the stated value.

    python reported_cases.py            verify every expected value against NumPy

Use from a test suite:

    from reported_cases import CASES, check
    @pytest.mark.parametrize("c", CASES, ids=lambda c: c["name"])
    def test_case(c):
        if c["needs"] - SUPPORTED: pytest.xfail(...)
        check(c, compile=nbcomp.compile)        # compile(fn) -> callable

Each case is a dict:
    name      unique id
    fn        a NumPy function, as a notebook user would write it (None for a scenario)
    scenario  instead of fn: scenario(compile) -> result, for cases about state
    args      zero-argument callable giving fresh arguments (they may be mutated)
    expect    the right value (a tuple result is compared as one flat array); an exception class
        (or tuple) when it must raise; or a predicate
    mode      exact | signed (exact + sign of zero) | close | raises | prop
    dtype     required result dtype, or None
    rtol      for close
    needs     set of features: loops, setitem, float16, ints, reduce, noncontig, ...
    note      what went wrong elsewhere and what nbcomp must do
    source    list of "owner/repo#number"
    level     silent (wrong answer) | crash | refuse | perf | state
    grad      right gradient of fn(x).sum() at args, or None
"""

import itertools
import linecache
import math
import sys
import warnings

import numpy as np

CASES = []
NAN, INF = float("nan"), float("inf")


def case(
    name,
    source,
    note,
    expect,
    mode="exact",
    args=lambda: (),
    dtype=None,
    rtol=0.0,
    needs=(),
    level="silent",
    scenario=False,
    grad=None,
):
    def deco(f):
        CASES.append(
            dict(
                name=name,
                fn=None if scenario else f,
                scenario=f if scenario else None,
                args=args,
                expect=expect,
                mode=mode,
                dtype=dtype,
                rtol=rtol,
                needs=frozenset(needs),
                note=" ".join(note.split()),
                source=list(source),
                level=level,
                grad=grad,
            )
        )
        return f

    return deco


_cells = itertools.count(1)


def cell(src, ns):
    """Run src in namespace ns as a notebook would: a made-up file name, the text in linecache."""
    name = f"<cell {next(_cells)}>"
    linecache.cache[name] = (len(src), None, src.splitlines(True), name)
    exec(compile(src, name, "exec"), ns)


def f32(*v):
    return np.array(v, dtype=np.float32)


def f64(*v):
    return np.array(v, dtype=np.float64)


def i32(*v):
    return np.array(v, dtype=np.int32)


def i64(*v):
    return np.array(v, dtype=np.int64)


def u8(*v):
    return np.array(v, dtype=np.uint8)


# ---------------------------------------------------------------- NaN, inf, signed zero


@case(
    "max_propagates_nan",
    ["numba/numba#5788", "tinygrad/tinygrad#862"],
    """Two compilers lowered max to `a < b ? b : a`, which silently drops a NaN depending on
      the operand order; the jitted answer was that of nanmax. NumPy's max propagates NaN. In LLVM
      use llvm.maximum (not maxnum, not fcmp+select), also in the tail and in the horizontal
      step.""",
    expect=lambda: f64(NAN, 4.0, NAN),
    args=lambda: (f64(2, 3, NAN, 1, 2, 4, NAN, 0, 0).reshape(3, 3),),
    needs=("reduce",),
)
def max_propagates_nan(x):
    return x.max(axis=1)


@case(
    "argmax_ties_take_first",
    ["pytorch/pytorch#99879", "pytorch/pytorch#183082"],
    """With several equal maxima a vectorised argmax that keeps one candidate per lane returned a
      later index than eager. NumPy promises the first. 37 elements force a vector body and a
      tail.""",
    expect=5,
    args=lambda: (np.where(np.isin(np.arange(37), (5, 6, 13, 30, 36)), 7.0, 1.0),),
    needs=("reduce", "argreduce"),
)
def argmax_ties_take_first(x):
    return np.argmax(x)


@case(
    "minimum_with_folded_nan",
    ["openxla/stablehlo#2887"],
    """minimum(3, NaN) built from constants was NaN eagerly and 3 under jit: two rules for one
    op. The
      folder and the run-time kernel must share one.""",
    expect=lambda: f64(NAN, NAN),
    args=lambda: (f64(1.0, -2.0),),
)
def minimum_with_folded_nan(x):
    z = x - x
    return np.minimum(x + 3.0, z / z)


@case(
    "relu_keeps_nan",
    ["microsoft/onnxruntime#11010", "tinygrad/tinygrad#862"],
    """One provider's Relu turned NaN into a number while another kept it, because max(x, 0)
      was a compare-and-select. np.maximum(x, 0) keeps NaN wherever it sits in the vector.""",
    expect=lambda: f32(NAN, 0, 2, 0, NAN, INF, 0),
    args=lambda: (f32(NAN, -1, 2, -INF, NAN, INF, 0),),
    dtype=np.float32,
)
def relu_keeps_nan(x):
    return np.maximum(x, 0)


@case(
    "zero_times_nan_is_not_zero",
    ["jax-ml/jax#4780"],
    """A CPU jit simplified `0 * loss` to 0, so a NaN loss vanished from the total in some output
      structures. x*0 -> 0 is only valid for integers; for floats it loses NaN, inf and -0.0.""",
    expect=NAN,
    args=lambda: (f64(1.0, NAN),),
    needs=("reduce",),
)
def zero_times_nan_is_not_zero(x):
    return x[0] + x.mean() * 0.0


@case(
    "exp_edges",
    ["jax-ml/jax#900", "jax-ml/jax#29537"],
    """A vector float32 exp gave a NEGATIVE number at -100 (exponent bits wrapped). The result is a
      tiny positive denormal there; 0 at -inf, inf past the overflow point, and never negative.""",
    expect=lambda r: (
        np.asarray(r).dtype == np.float32
        and bool((r[:3] >= 0).all())
        and r[0] == 0.0
        and abs(float(r[1]) / math.exp(-100.0) - 1) < 0.02
        and r[2] == 0.0
        and r[3] == 1.0
        and r[4] == np.inf
        and r[5] == np.inf
        and np.isnan(r[6])
    ),
    mode="prop",
    args=lambda: (f32(-INF, -100.0, -200.0, 0.0, 89.0, INF, NAN),),
)
def exp_edges(x):
    return np.exp(x)


@case(
    "inf_times_subnormal",
    ["jax-ml/jax#38632", "jax-ml/jax#4042"],
    """-inf times the smallest float32 subnormal was NaN because the subnormal was read as zero.
      It is -inf.""",
    expect=lambda: f32(-INF, INF),
    args=lambda: (f32(-INF, INF), np.float32(1.401298464324817e-45).repeat(2)),
    dtype=np.float32,
)
def inf_times_subnormal(a, b):
    return a * b


# ---------------------------------------------------------------- rounding and reassociation


@case(
    "no_fma_in_difference_of_squares",
    ["jax-ml/jax#26147"],
    """x2*x2 - x1*x1 with x2 == x1 came out slightly negative under jit on CPU because one product
      was contracted into an FMA and the other was rounded. Strict mode must not emit
      `contract`.""",
    expect=lambda: np.zeros(3, np.float32),
    dtype=np.float32,
    args=lambda: (f32(0.1, 0.7, 1234.567), np.float32(0)),
)
def no_fma_in_difference_of_squares(x, s):
    y = x * (np.float32(1) + s)
    return y * y - x * x


@case(
    "softmax_of_inf_row_is_nan",
    ["pytorch/pytorch#161150"],
    """A row with +inf gave all ones when compiled. inf - inf is NaN: that whole row is NaN, its
      neighbour is untouched.""",
    expect=lambda r: bool(np.isnan(r[0]).all()) and bool((r[1] == 0.25).all()),
    mode="prop",
    needs=("reduce",),
    args=lambda: (f32(INF, -INF, INF, 1, 2, 2, 2, 2).reshape(2, 4),),
)
def softmax_of_inf_row_is_nan(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


@case(
    "half_round_trip_keeps_rounding",
    ["pytorch/pytorch#185337", "pytorch/pytorch#183761"],
    """float32 -> float16 -> float32 was treated as a no-op inside a fused kernel, so the rounding
      the user asked for vanished. A pair of casts may be removed only when the middle type is
      wider.""",
    expect=lambda: f32(0.333251953125, 2048.0, INF),
    dtype=np.float32,
    needs=("float16",),
    args=lambda: (f32(1 / 3, 2049.0, 70000.0),),
)
def half_round_trip_keeps_rounding(x):
    return x.astype(np.float16).astype(np.float32)


@case(
    "float32_sum_stays_accurate",
    ["numba/numba#2855", "numba/numba#9679", "pydata/bottleneck#193"],
    """A left-to-right float32 sum of a million values was off by 0.3%, where NumPy's pairwise sum
      is right to 7 digits. Sum with many accumulators combined pairwise: it is faster as well.""",
    expect=lambda r: np.asarray(r).dtype == np.float32 and abs(float(r) - 1e6 / 255) < 2e-3,
    mode="prop",
    needs=("reduce",),
    args=lambda: (np.ones(10**6, dtype=np.uint8),),
)
def float32_sum_stays_accurate(a):
    return (a / np.float32(255)).sum()


@case(
    "log1p_expm1_small",
    ["jax-ml/jax#1200", "ekzhang/jax-js#199"],
    """log1p/expm1 implemented as log(1+x)/exp(x)-1 return 0 near 0. And the other way round: the
      user's own log(1+x) must not be silently replaced either.""",
    expect=lambda: f64(1e-18, 1e-18, 0.0),
    args=lambda: (f64(1e-18),),
    mode="close",
    rtol=1e-15,
)
def log1p_expm1_small(x):
    return np.log1p(x), np.expm1(x), np.log(1 + x)


# ---------------------------------------------------------------- integers


@case(
    "int8_wraps_inside_a_fused_chain",
    ["pytorch/pytorch#109105"],
    """The C++ backend kept int8 intermediates in int (C promotion), so a fused multiply-add gave
      150 where eager wrapped to -106. Every intermediate has its NumPy dtype and wraps there.""",
    expect=lambda: np.array([-106, -46], np.int8),
    dtype=np.int8,
    needs=("ints",),
    args=lambda: (
        np.array([6, 7], np.int8),
        np.array([20, 29], np.int8),
        np.array([5, 1], np.int8),
    ),
)
def int8_wraps_inside_a_fused_chain(c, x, y):
    return c * (x + y)


@case(
    "nep50_python_int_is_weak",
    ["numpy/numpy#29202", "numpy/numpy#22624"],
    """Since NumPy 2 a Python int takes the array's dtype: uint8 200 + 128 is 72 in uint8. Compilers
      written against NumPy 1, and Numba's own rules, give int64 328.""",
    expect=lambda: u8(72, 128),
    dtype=np.uint8,
    needs=("ints",),
    args=lambda: (u8(200, 0),),
)
def nep50_python_int_is_weak(a):
    return a + 128


@case(
    "mixed_sign_promotes_to_int64",
    ["inducer/pytato#509"],
    """uint32 minus int32 was computed in 32 bits and only then widened, giving 4294967290. Promote
      first: the result is int64 and negative.""",
    expect=lambda: i64(-6, -5, -4),
    dtype=np.int64,
    needs=("ints",),
    args=lambda: (np.array([1, 2, 3], np.uint32), i32(7, 7, 7)),
)
def mixed_sign_promotes_to_int64(a, b):
    return a - b


@case(
    "unsigned_is_zero_extended",
    ["numba/numba#125"],
    """A uint32 above 2**31 was sign-extended before a 64-bit division (sext for zext in the LLVM
      IR). Signedness lives in the dtype, not in the LLVM type.""",
    expect=lambda: i64(1431655765, 1),
    dtype=np.int64,
    needs=("ints",),
    args=lambda: (np.array([2**32 - 1, 3], np.uint32), i64(3, 3)),
)
def unsigned_is_zero_extended(a, n):
    return a // n


@case(
    "int_floordiv_floors",
    ["numba/numba#193", "NVIDIA/numba-cuda-mlir#184"],
    """// compiled to truncating division: 1 // -2 was 0 (and, in a newer compiler, negative
    operands
      were zero-extended). It is -1. sdiv alone is wrong; so is a shift for negative powers of
      two.""",
    expect=lambda: i32(-1, -4, 3, -4, -1),
    dtype=np.int32,
    needs=("ints",),
    args=lambda: (i32(1, 7, -7, -7, -1), i32(-2, -2, -2, 2, 8)),
)
def int_floordiv_floors(a, b):
    return a // b


@case(
    "float_floordiv_and_mod_signs",
    ["numpy/numpy#12841", "exaloop/codon#777"],
    """Float // and % need fmod plus a correction: -1.0 % 3.0 is 2.0, 0.0 // 1.0 is +0.0, 1.0 // 0.1
      is 9 (not floor(1/0.1) = 10), and x % inf keeps Python's rule.""",
    expect=lambda: f64(2.0, -1.0, 0.0, 9.0, INF),
    mode="signed",
    args=lambda: (f64(-1.0, -1.0), f64(3.0, 3.0)),
)
def float_floordiv_and_mod_signs(a, b):
    z = np.array([0.0, 1.0, -1.0])
    w = np.array([1.0, 0.1, np.inf])
    return (a % b)[0], (a // b)[0], (z // w)[0], (z // w)[1], (z % w)[2]


@case(
    "int_min_over_minus_one_does_not_trap",
    ["numpy/numpy#21506", "numpy/numpy#21507"],
    """INT_MIN // -1 overflows: idiv traps and LLVM calls it undefined. NumPy wraps to INT_MIN and
      gives 0 for %.""",
    expect=lambda: i64(-(2**63), 0, -(2**31), 0),
    dtype=np.int64,
    needs=("ints",),
    level="crash",
    args=lambda: (i64(-(2**63)), i64(-1), i32(-(2**31)), i32(-1)),
)
def int_min_over_minus_one_does_not_trap(a, m, c, n):
    return a // m, a % m, (c // n).astype(np.int64), (c % n).astype(np.int64)


@case(
    "int_power_wraps",
    ["pydata/numexpr#454"],
    """Integer power went through double (or saturated) and returned INT64_MAX. NumPy multiplies
      modulo 2**64; do not lower int pow to llvm.powi or pow().""",
    expect=lambda: i64(0, (3**40 + 2**63) % 2**64 - 2**63, -(3**39)),
    dtype=np.int64,
    needs=("ints",),
    args=lambda: (i64(10000, 3, -3), i64(10000, 40, 39)),
)
def int_power_wraps(a, b):
    return a**b


@case(
    "negate_and_abs_full_width",
    ["pydata/numexpr#25"],
    """An opcode negated int64 through a 32-bit register. -(2**32-1) must be exact, and INT64_MIN
      wraps to itself for both - and abs (so no `nsw`, no is_int_min_poison).""",
    expect=lambda: i64(-2147483648, -4294967295, -(2**63), -(2**63)),
    dtype=np.int64,
    needs=("ints",),
    args=lambda: (i64(2**31, 2**32 - 1, -(2**63)),),
)
def negate_and_abs_full_width(a):
    return -a, np.abs(a)[2:]


@case(
    "float_to_narrow_uint_through_int",
    ["pytorch/pytorch#131910"],
    """-1.7 to uint8 gave 255 in eager and 0 in compiled code: out-of-range float->int is undefined
      in C and poison in LLVM (fptoui), and NumPy's own result depends on the machine. Spelled
      through
      int32 it is defined: 255. For the direct cast nbcomp should pick one rule and document it.""",
    expect=lambda: u8(255, 0, 44),
    dtype=np.uint8,
    needs=("ints",),
    args=lambda: (f32(-1.7, 0.9, 300.2),),
)
def float_to_narrow_uint_through_int(x):
    return x.astype(np.int32).astype(np.uint8)


@case(
    "uint8_sum_does_not_overflow",
    ["numba/numba#1652", "nv-legate/cupynumeric#1076"],
    """Same rule for uint8: 1000 * 255 fits because the sum is uint64, and the mean is float64.""",
    expect=lambda: f64(255000.0, 255.0),
    needs=("reduce", "ints"),
    args=lambda: (np.full(1000, 255, np.uint8),),
)
def uint8_sum_does_not_overflow(a):
    return a.sum(), a.mean()


# ---------------------------------------------------------------- empty arrays, shapes, indexing


@case(
    "reduce_around_an_empty_axis",
    ["numpy/numpy#22063", "data-apis/array-api#262"],
    """Only the reduced axis matters: min over axis 1 of shape (0, 3) is an empty array, the sum
    over
      axis 0 is zeros, prod of nothing is 1, mean of nothing is NaN.""",
    expect=lambda: f64(0, 0, 0, 0, 1, NAN),
    needs=("reduce",),
    args=lambda: (np.zeros((0, 3)),),
)
def reduce_around_an_empty_axis(x):
    return x.min(axis=1).shape[0], x.sum(axis=0), x.prod(), x.mean()


@case(
    "length_of_slice_of_constant",
    ["numba/numba#4075"],
    """Shape inference copied the literal length of `a` to its slice, so len(a[1:]) was 10.""",
    expect=9,
)
def length_of_slice_of_constant():
    a = np.ones(10)
    c = a[1:]
    return c.shape[0]


@case(
    "negative_stride_input",
    ["pydata/numexpr#63"],
    """An input view with a negative stride and a gap (img[::-1, :, 0]) was read as if contiguous
    and
      sometimes gave values 991 away. Key the kernel on strides, or copy.""",
    expect=lambda: np.array([[16, 18, 20, 22], [8, 10, 12, 14], [0, 2, 4, 6]]) - 0.25,
    needs=("noncontig",),
    args=lambda: (np.arange(24.0).reshape(3, 4, 2)[::-1, :, 0],),
)
def negative_stride_input(img):
    return img - 0.25


@case(
    "overlapping_shift",
    ["numba/numba#230"],
    """x[1:] = x[:-1] copied in ascending order, smearing the first value over the row. NumPy
    behaves
      as if the right side were copied first. Overlap must be detected at run time too.""",
    expect=lambda: f64(0, 0, 1, 2, 3, 4, 5, 6, 7, 8),
    needs=("setitem", "alias"),
    args=lambda: (np.arange(10.0),),
)
def overlapping_shift(x):
    x[1:] = x[:-1]
    return x


@case(
    "caller_aliases_out_and_in",
    ["numba/numba#230", "pytorch/pytorch#101950"],
    """Same hazard from outside: the caller passes two overlapping views. `noalias` on pointer
      arguments is a promise nbcomp can only make after checking the address ranges.""",
    expect=lambda: f64(0, 0, 1, 2, 3),
    needs=("setitem", "alias"),
    args=lambda: (lambda b: (b[1:], b[:-1], b))(np.arange(5.0)),
)
def caller_aliases_out_and_in(dst, src, base):
    dst[:] = src
    return base


@case(
    "write_through_a_view",
    ["numba/numba#2646"],
    """Writes through a slice of an intermediate were lost when the slice was materialised. A basic
      slice is a view: the base changes.""",
    expect=lambda: f64(0, 0, 5, 5, 0),
    needs=("setitem", "alias"),
    args=lambda: (np.zeros(5),),
)
def write_through_a_view(x):
    v = x[2:4]
    v += 5
    return x


@case(
    "inplace_broadcast_must_not_grow",
    ["numpy/numpy#22175", "numpy/numpy#9031"],
    """a += b may not change a's shape: NumPy raises ValueError. A compiler that rewrites += as
      a = a + b returns a bigger array (and breaks aliasing).""",
    expect=ValueError,
    mode="raises",
    needs=("setitem",),
    level="refuse",
    args=lambda: (np.zeros(1), np.zeros(2)),
)
def inplace_broadcast_must_not_grow(a, b):
    a += b
    return a


@case(
    "zero_d_array_in_scalar_out",
    ["numba/numba#1078", "numba/numba#10221", "numpy/numpy#6051"],
    """any/all refused bare scalars; an older bug returned a scalar for array operands. 0-d
    arrays and
      scalars are ordinary inputs: shape () in, shape () out.""",
    expect=3.0,
    level="refuse",
    args=lambda: (np.array(2.0), 1.0),
)
def zero_d_array_in_scalar_out(a, b):
    return np.where(np.any(a), a + b, 0.0)


@case(
    "strided_padded_depthwise_conv",
    ["pytorch/pytorch#56741"],
    """Vectorising the innermost loop of a stride-2, padded 5x5 depthwise convolution produced wrong
      sums. Odd sizes (13 in, 7 out) hit every border; the check is a direct sum in plain
      Python.""",
    expect=lambda r: (
        r.shape == (3, 7, 7) and bool(np.allclose(r, _conv_reference(), rtol=1e-12, atol=0))
    ),
    mode="prop",
    needs=("setitem",),
    args=lambda: (_conv_image(), _conv_weight()),
)
def strided_padded_depthwise_conv(img, w):
    p = np.zeros((3, 17, 17))
    p[:, 2:15, 2:15] = img
    out = np.zeros((3, 7, 7))
    for r in range(5):
        for s in range(5):
            out += p[:, r : r + 13 : 2, s : s + 13 : 2] * w[:, r, s].reshape(3, 1, 1)
    return out


def _conv_image():
    return ((np.arange(3 * 13 * 13) * 7) % 11 - 5.0).reshape(3, 13, 13)


def _conv_weight():
    return ((np.arange(75) * 5) % 7 - 3.0).reshape(3, 5, 5)


def _conv_reference():
    img, w = _conv_image().tolist(), _conv_weight().tolist()
    return np.array(
        [
            [
                [
                    sum(
                        img[c][2 * i + r - 2][2 * j + s - 2] * w[c][r][s]
                        for r in range(5)
                        for s in range(5)
                        if 0 <= 2 * i + r - 2 < 13 and 0 <= 2 * j + s - 2 < 13
                    )
                    for j in range(7)
                ]
                for i in range(7)
            ]
            for c in range(3)
        ]
    )


# ---------------------------------------------------------------- explicit loops


@case(
    "loop_reduction_with_start_and_branches",
    ["numba/numba#7344", "numba/numba#4922"],
    """Parallel reductions added the starting value once per thread, and counted a conditional
    second
      update wrongly. Start at 10, add 1 always and 1 more sometimes.""",
    expect=10 + 20 + 9,
    needs=("loops", "reduce"),
    args=lambda: (np.arange(20),),
)
def loop_reduction_with_start_and_branches(a):
    s = 10
    for i in range(a.shape[0]):
        s += 1
        if a[i] > 10:
            s += 1
    return s


@case(
    "loop_carried_counter",
    ["numba/numba#9829"],
    """A running id assigned inside a parallel loop (each step uses the previous one) was run in
      parallel without a word. Either keep it serial or refuse; never silently parallelise.""",
    expect=lambda: i64(5, 0, 6, 7, 1, 8),
    dtype=np.int64,
    needs=("loops", "setitem", "ints"),
    args=lambda: (i64(-1, 0, -1, -1, 1, -1), 5),
)
def loop_carried_counter(x, nxt):
    for i in range(x.shape[0]):
        if x[i] < 0:
            x[i] = nxt
            nxt += 1
    return x


# ---------------------------------------------------------------- compile-time state


@case(
    "global_change_is_seen",
    ["numba/numba#2242", "numba/numba#9304"],
    """Globals are frozen at first compile, so editing `SCALE = 3` in another cell and re-running
      does nothing. In a notebook that is the normal way to work: guard on the value, or
      re-specialise,
      or at least say the kernel is stale.""",
    expect=lambda: f64(2, 4, 3, 6),
    scenario=True,
    level="state",
    needs=("globals",),
)
def global_change_is_seen(compile):
    ns = {"np": np, "SCALE": 2.0}
    cell("def f(x):\n    return x * SCALE\n", ns)
    g = compile(ns["f"])
    a = g(np.array([1.0, 2.0]))
    ns["SCALE"] = 3.0
    b = g(np.array([1.0, 2.0]))
    return np.concatenate([a, b])


@case(
    "redefined_helper_is_used",
    ["numba/numba#1833"],
    """Editing a helper function and re-running its cell left the old body inlined in the cached
      caller. The cache key has to cover everything reached from the function.""",
    expect=lambda: f64(2, 20),
    scenario=True,
    level="state",
    needs=("globals", "calls"),
)
def redefined_helper_is_used(compile):
    ns = {"np": np}
    cell("def helper(x):\n    return x * 2\ndef f(x):\n    return helper(x)\n", ns)
    g = compile(ns["f"])
    a = g(np.ones(1))
    cell("def helper(x):\n    return x * 20\n", ns)
    return np.concatenate([a, compile(ns["f"])(np.ones(1))])


@case(
    "keyword_and_default_arguments",
    ["jax-ml/jax#19129"],
    """Keyword, default and reordered arguments must reach the right parameter (and not make a new
      kernel per spelling, as JAX's cache-miss examples show).""",
    expect=lambda: f64(5, 5, -1),
    scenario=True,
    level="state",
)
def keyword_and_default_arguments(compile):
    def lin(x, b, a=2.0):
        return a * x - b

    g = compile(lin)
    x = np.array([3.0])
    return np.concatenate([g(x, 1.0), g(b=1.0, x=x), g(x, a=0.0, b=1.0)])


# ---------------------------------------------------------------- fold-time == run-time


# ------------------------------------------------ speed traps (value checked; time it too)


@case(
    "broadcast_is_not_recomputed",
    ["numba/numba#6387"],
    """Fusing sin(x**2) (1000 values) and cos(y**2) (100 values) into the 100000-element broadcast
      loop made the compiled version 15-24x SLOWER than writing it in two lines. A fused producer
      must not be re-evaluated over axes it does not have.""",
    expect=lambda r: (
        r.shape == (100, 1000)
        and abs(float(r[3, 7]) - (math.sin(0.007**2) + math.cos(0.3**2))) < 1e-15
    ),
    mode="prop",
    level="perf",
    args=lambda: ((np.arange(1000) / 1000).reshape(1, 1000), (np.arange(100) / 10).reshape(100, 1)),
)
def broadcast_is_not_recomputed(x, y):
    return np.sin(x**2) + np.cos(y**2)


@case(
    "int_axis_sums_agree",
    ["numba/numba#9679", "numba/numba#8055"],
    """Numba's sum was 2x to 13x slower than NumPy depending on the axis. Values first; then time
      axis 0, 1 and 2 of a (128, 128, 128) array: none should lose to NumPy.""",
    expect=lambda: f64(276, 276, 276),
    level="perf",
    needs=("reduce",),
    args=lambda: (np.arange(24.0).reshape(2, 3, 4),),
)
def int_axis_sums_agree(x):
    return x.sum(axis=0).sum(), x.sum(axis=1).sum(), x.sum(axis=2).sum()


# ---------------------------------------------- gradients (if nbcomp grows autodiff)


def numeric_grad(f, x, h=1e-6):
    g = np.zeros_like(x)
    for i in range(x.size):
        d = np.zeros_like(x)
        d.flat[i] = h
        g.flat[i] = (f(x + d) - f(x - d)) / (2 * h)
    return g


# ---------------------------------------------------------------- whole model


@case(
    "mlp_keeps_every_bias",
    ["seed document (TVM CUBLAS dispatch listing)"],
    """In the seed document's printed module after library dispatch the second layer's `+ fc2_bias`
      has gone, together with the parameter. Whatever the cause of that listing, it is the model
      check:
      compare outputs after every pass, not only at the end.""",
    expect=lambda: f64(1003.0, 2000.0),
    needs=("matmul",),
    args=lambda: (
        f64(1, 2),
        f64(1, 0, 0, 1, 1, 1).reshape(3, 2),
        f64(0, -5, 0),
        f64(1, 0, 1, 0, 1, 0).reshape(2, 3),
        f64(999, 2000),
    ),
)
def mlp_keeps_every_bias(x, w1, b1, w2, b2):
    h = np.maximum(w1 @ x + b1, 0)
    return w2 @ h + b2


# ---------------------------------------------------------------- checking


def _join(r):
    """A tuple of results becomes one flat array; NumPy scalars and arrays stay as they are."""
    if isinstance(r, (tuple, list)):
        return np.concatenate([np.atleast_1d(np.asarray(v)) for v in r])
    return r


def _same(got, want, mode, rtol):
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape:
        return False, f"shape {got.shape}, want {want.shape}"
    if mode == "close":
        ok = bool(np.allclose(got, want, rtol=rtol, atol=0, equal_nan=True))
    elif want.dtype.kind in "fc":
        ok = bool(np.array_equal(got, want, equal_nan=True))
    else:
        ok = bool(np.array_equal(got, want))
    if ok and mode == "signed":
        ok = bool(np.array_equal(np.signbit(got), np.signbit(want)))
    return ok, f"got {got!r}, want {want!r}"


def check(c, compile=lambda f: f):
    """Run case c through compile(); raise AssertionError when the result is not the right one."""

    def run():
        return c["scenario"](compile) if c["scenario"] else compile(c["fn"])(*c["args"]())

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if c["mode"] == "raises":
            try:
                r = run()
            except c["expect"]:
                return
            raise AssertionError("{}: no {}, got {!r}".format(c["name"], c["expect"].__name__, r))
        r = run()
    if c["dtype"] is not None:
        for v in r if isinstance(r, (tuple, list)) else (r,):
            assert np.asarray(v).dtype == np.dtype(c["dtype"]), "{}: dtype {}, want {}".format(
                c["name"],
                np.asarray(v).dtype,
                np.dtype(c["dtype"]),
            )
    r = _join(r)
    if c["mode"] == "prop":
        assert c["expect"](r), "{}: property fails for {!r}".format(c["name"], r)
        return
    want = c["expect"]() if callable(c["expect"]) else c["expect"]
    ok, why = _same(r, want, c["mode"], c["rtol"])
    assert ok, "{}: {}".format(c["name"], why)


def check_grad(c, grad):
    """grad(fn) -> function giving d fn(x).sum() / dx at the same arguments."""
    with np.errstate(all="ignore"):
        g = grad(c["fn"])(*c["args"]())
    assert np.allclose(g, c["grad"](), rtol=1e-5), "{}: gradient {!r}, want {!r}".format(
        c["name"],
        g,
        c["grad"](),
    )


def main(argv):
    bad = 0
    for c in CASES:
        try:
            check(c)
            if c["grad"]:
                check_grad(c, lambda f: lambda x: numeric_grad(lambda v: f(v).sum(), x))
        except Exception as e:
            bad += 1
            print("FAIL", type(e).__name__, e)
    print(f"{len(CASES)} cases, {bad} disagree with NumPy {np.__version__}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
