"""Programs in the styles people write: classes, hooks, generators, patterns, decorators and the
rest of the language.  Each function gets an array and a list, in which it may leave a record of
what it did; it may use and change what is here."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import functools
import itertools
import math
from collections import OrderedDict, defaultdict, namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np

STYLES: list[Callable[[Any, list[Any]], Any]] = []


def style(function: Any) -> Any:
    """Declare a program."""
    STYLES.append(function)
    return function


# ------------------------------------------------------------------------------- model code


class Linear:
    def __init__(self, n, m):
        self.w = np.linspace(-1, 1, n * m).reshape(n, m)
        self.b = np.zeros(m)

    def __call__(self, x):
        return x @ self.w + self.b


class Hooked(Linear):
    def __init__(self, n, m):
        super().__init__(n, m)
        self.hooks = []

    def register(self, hook):
        self.hooks.append(hook)
        return hook

    def __call__(self, x):
        y = super().__call__(x)
        for hook in self.hooks:
            out = hook(self, x, y)
            if out is not None:
                y = out
        return y


HOOKED = Hooked(4, 3)
HOOKED.register(lambda module, x, y: y * 2)
HOOKED.register(lambda module, x, y: None)


@style
def hooks(x, log):
    return HOOKED(x)


@style
def hooks_that_record(x, log):
    layer = Hooked(4, 3)
    layer.register(lambda module, a, b: log.append(b.shape))
    return layer(x).sum()


class Activation(enum.Enum):
    RELU = "relu"
    TANH = "tanh"

    def __call__(self, x):
        return np.maximum(x, 0) if self is Activation.RELU else np.tanh(x)


@dataclasses.dataclass
class Config:
    width: int = 3
    act: Activation = Activation.TANH
    scale: float = 0.5
    layers: list = dataclasses.field(default_factory=lambda: [4, 4])


@style
def configured(x, log):
    cfg = Config(scale=2.0)
    for width in cfg.layers:
        x = cfg.act(x[:, :width] * cfg.scale)
    return x


CFG = {"model": {"depth": 2, "act": "gelu"}, "eps": 1e-5}


@style
def dict_config(x, log):
    for _ in range(CFG["model"]["depth"]):
        if CFG["model"].get("act") == "gelu":
            x = 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
        x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + CFG["eps"])
    return x


class Norm:
    eps = 1e-6

    def __init__(self, dim):
        self.dim = dim
        self._gain = np.ones(dim)

    @property
    def gain(self):
        return self._gain * 2

    @classmethod
    def of(cls, x):
        return cls(x.shape[-1])

    @staticmethod
    def rms(x, eps):
        return np.sqrt((x * x).mean(axis=-1, keepdims=True) + eps)

    def forward(self, x):
        return x / self.rms(x, self.eps) * self.gain


@style
def properties(x, log):
    return Norm.of(x).forward(x)


class Sequential:
    def __init__(self, *layers):
        self.layers = OrderedDict((str(k), f) for k, f in enumerate(layers))

    def __iter__(self):
        return iter(self.layers.values())

    def __len__(self):
        return len(self.layers)

    def __getitem__(self, k):
        return self.layers[str(k)]

    def __call__(self, x):
        for layer in self:
            x = layer(x)
        return x


@style
def containers(x, log):
    net = Sequential(Linear(4, 3), np.tanh, lambda v: v * len(log))
    return net(x) + net[0](x) * len(net)


@style
def state_dict(x, log):
    params = {"w": np.eye(4), "b": np.ones(4)}
    params = {k: v * 0.5 for k, v in params.items()}
    params |= {"c": 2.0}
    return x @ params["w"] + params["b"] * params.pop("c"), sorted(params)


class Scale:
    """A descriptor with a state of its own."""

    def __init__(self, value):
        self.value, self.reads = value, 0

    def __set_name__(self, owner, name):
        self.name = name

    def __get__(self, instance, owner=None):
        self.reads += 1
        return self.value

    def __set__(self, instance, value):
        self.value = value


class Scaled:
    factor = Scale(3.0)


SCALED = Scaled()


@style
def data_descriptor(x, log):
    SCALED.factor = SCALED.factor + 1 if SCALED.factor < 9 else 3.0
    return x * SCALED.factor


class Positive:
    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, instance, owner=None):
        return self if instance is None else getattr(instance, self.name)

    def __set__(self, instance, value):
        if value <= 0:
            raise ValueError(f"{self.name[1:]} must be positive, not {value}")
        setattr(instance, self.name, value)


class Checked:
    rate = Positive()

    def __init__(self, rate):
        self.rate = rate


@style
def validating_descriptor(x, log):
    try:
        Checked(-1)
    except ValueError as error:
        log.append(str(error))
    return x * Checked(0.5).rate


class Timer:
    def __init__(self, log):
        self.log = log

    def __enter__(self):
        self.log.append("enter")
        return self

    def __exit__(self, kind, error, trace):
        self.log.append(("exit", kind and kind.__name__))
        return kind is ZeroDivisionError


@style
def context_manager(x, log):
    with Timer(log) as t:
        y = x * 2
        t.log.append("inside")
        1 / (len(log) - 2)
    return y + 1


@contextlib.contextmanager
def announced(log, name):
    log.append(f"start {name}")
    try:
        yield name.upper()
    finally:
        log.append(f"end {name}")


@style
def generator_context(x, log):
    with announced(log, "a") as a, announced(log, "b"):
        y = x + len(a)
    return y


class Counter:
    calls = 0

    def __call__(self, x):
        Counter.calls += 1
        self.last = x.shape
        return x + Counter.calls * 0


COUNTER = Counter()


@style
def counting(x, log):
    y = COUNTER(COUNTER(x))
    log.append(COUNTER.last)
    return y


class Frozen:
    __slots__ = ("a", "b")

    def __init__(self, a, b):
        self.a, self.b = a, b

    def __eq__(self, other):
        return isinstance(other, Frozen) and self.a == other.a

    def __hash__(self):
        return hash(self.a)

    def __add__(self, other):
        return Frozen(self.a + other.a, self.b + other.b)


@style
def operators_of_classes(x, log):
    s = Frozen(1, x) + Frozen(2, x * 2)
    return s.b * s.a if s == Frozen(3, None) else s.b


Point = namedtuple("Point", "x y")


@style
def named_tuples(x, log):
    p = Point(x[0], x[1])
    q = p._replace(y=p.x * 2)
    return Point(*(a + b for a, b in zip(p, q, strict=True)))


class Base:
    def forward(self, x):
        return self.body(x) + self.bias

    bias = 1.0

    def body(self, x):
        raise NotImplementedError


class Child(Base):
    def body(self, x):
        return x * 2

    def forward(self, x):
        return super().forward(x) * 3


@style
def template_method(x, log):
    return Child().forward(x)


class Lazy:
    @functools.cached_property
    def table(self):
        return np.arange(4.0) ** 2


LAZY = Lazy()


@style
def cached_property(x, log):
    return x + LAZY.table + LAZY.table


class Registry:
    known: dict[str, Any] = {}  # noqa: RUF012

    @classmethod
    def register(cls, name):
        def wrap(f):
            cls.known[name] = f
            return f

        return wrap


@Registry.register("double")
def _double(x):
    return x * 2


@style
def registry(x, log):
    return Registry.known["double"](x)


class Proxy:
    def __init__(self, inner):
        self.__dict__["inner"] = inner

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def __setattr__(self, name, value):
        setattr(self.inner, name, value)


@style
def proxies(x, log):
    p = Proxy(Norm(4))
    p.eps = 0.25
    return p.forward(x) * p.eps


# ---------------------------------------------------------------------- generators and friends


@style
def generator_function(x, log):
    def rows(a):
        for k, row in enumerate(a):
            log.append(k)
            yield row * k

    return sum(rows(x))


@style
def generator_send(x, log):
    def averager():
        total, count, mean = 0.0, 0, None
        while True:
            value = yield mean
            total += value
            count += 1
            mean = total / count

    g = averager()
    next(g)
    return [g.send(float(v)) for v in x[0]]


@style
def yield_from(x, log):
    def inner(a):
        yield a
        yield a + 1
        return "done"

    def outer(a):
        log.append((yield from inner(a)))

    return np.stack(list(outer(x)))


@style
def iterators(x, log):
    pairs = itertools.pairwise(range(4))
    chained = itertools.chain(pairs, [(0, 3)])
    return sum(x[0, a] * x[0, b] for a, b in chained)


@style
def accumulate_reduce(x, log):
    total = functools.reduce(lambda a, b: a + b, [x * k for k in range(4)])
    return total + list(itertools.accumulate([1, 2, 3]))[-1]


# ------------------------------------------------------------------------------- exceptions


@style
def try_except_else_finally(x, log):
    try:
        y = x.reshape(5, 5)
    except ValueError as error:
        log.append(type(error).__name__)
        y = x.T
    else:
        log.append("else")
    finally:
        log.append("finally")
    return y @ x


@style
def finally_returns(x, log):
    def f(a):
        try:
            return a * 2
        finally:
            log.append("cleanup")

    return f(x)


@style
def raise_from(x, log):
    try:
        try:
            {}["missing"]
        except KeyError as error:
            raise RuntimeError("wrapped") from error
    except RuntimeError as error:
        log.append(repr(error.__cause__))
    return x


class ShapeError(ValueError):
    def __init__(self, shape):
        super().__init__(f"bad shape {shape}")
        self.shape = shape


@style
def custom_exception(x, log):
    def check(a):
        if a.shape[0] > 100:
            raise ShapeError(a.shape)
        return a

    try:
        check(np.zeros(200))
    except ShapeError as error:
        log.append(error.shape)
    return check(x) + 1


@style
def value_error_on_values(x, log):
    if (x > 1e9).any():
        raise ValueError("too large")
    return np.sqrt(np.abs(x))


@style
def assertion_with_message(x, log):
    assert x.ndim == 2, f"expected 2 axes, got {x.ndim}"
    return x.sum(axis=0)


@style
def suppressed(x, log):
    with contextlib.suppress(IndexError, KeyError):
        log.append(x[99])
    return x[0]


@style
def exception_group(x, log):
    try:
        raise ExceptionGroup("several", [ValueError("a"), TypeError("b")])
    except* ValueError as group:
        log.append(len(group.exceptions))
    except* TypeError:
        log.append("type")
    return x


# ----------------------------------------------------------------- functions and their friends


def logged(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs) * 2

    return wrapper


@logged
def _decorated(x, power=2):
    return x**power


@style
def decorated(x, log):
    return _decorated(x, power=3)


def repeat(times):
    def decorator(f):
        def inner(x):
            for _ in range(times):
                x = f(x)
            return x

        return inner

    return decorator


@repeat(3)
def _halve(x):
    return x / 2


@style
def decorator_with_arguments(x, log):
    return _halve(x)


@functools.cache
def _table(n):
    return np.arange(float(n))


@style
def memoised(x, log):
    return x + _table(4)


@style
def closures(x, log):
    def counter():
        n = 0

        def step(k=1):
            nonlocal n
            n += k
            return n

        return step

    c = counter()
    c()
    return x * c(4) + c()


@style
def late_binding(x, log):
    fs = [lambda a: a * k for k in range(3)]  # noqa: B023
    gs = [lambda a, k=k: a * k for k in range(3)]
    return fs[0](x) + gs[1](x)


@style
def star_args(x, log):
    def f(a, /, b, *rest, c=1, **named):
        return a + b * len(rest) + c + sum(named.values())

    args, kwargs = [x, 2.0, 3, 4], {"c": 5, "d": 6}
    return f(*args, **kwargs, e=0.5)


@style
def partials(x, log):
    clip = functools.partial(np.clip, a_min=-0.5, a_max=0.5)
    return clip(x) + functools.partial(pow, 2)(3)


@style
def recursive(x, log):
    def power(a, n):
        if n == 0:
            return np.ones_like(a)
        half = power(a, n // 2)
        return half * half * (a if n % 2 else 1)

    return power(x, 5)


@style
def dispatch_table(x, log):
    ops = {"add": lambda a, b: a + b, "mul": np.multiply, "neg": lambda a, _: -a}
    out = x
    for name in ["add", "mul", "neg"]:
        out = ops[name](out, x)
    return out


@functools.singledispatch
def _describe(value):
    return "other"


@_describe.register
def _(value: int):
    return "int"


@style
def single_dispatch(x, log):
    log.append((_describe(3), _describe("a")))
    return x


# ------------------------------------------------------------------------------- expressions


@style
def f_strings(x, log):
    log.append(f"{x.shape=} {x.dtype!s:>10} {3.14159:.2f} {len(x):03d}")
    return x


@style
def text_of_values(x, log):
    log.append(f"mean {x.mean():.3f}, first {x[0, 0]:+.1e}")
    return x * 2


@style
def walrus(x, log):
    if (n := x.shape[1]) > 2 and (m := n * 2):
        return x[:, : n - 1] * m
    return x


@style
def walrus_in_while(x, log):
    k = 0
    while (total := float(np.abs(x).sum())) > 1 and k < 5:
        x = x / 2
        k += 1
    return x, k, total > 1


@style
def matching(x, log):
    def kind(v):
        match v:
            case {"op": "scale", "by": float(f)} if f > 0:
                return x * f
            case {"op": "shift", **rest}:
                return x + rest["by"]
            case [first, *_, last]:
                return x * first + last
            case Point(x=a, y=0):
                return x * a
            case str() | None:
                return x
            case _:
                return -x

    given = ({"op": "scale", "by": 2.0}, {"op": "shift", "by": 1}, [1, 2, 3], Point(2, 0), None, 5)
    return [kind(v) for v in given]


@style
def comprehensions(x, log):
    rows = [row * k for k, row in enumerate(x) if k % 2 == 0]
    table = {k: row.sum() for k, row in enumerate(x)}
    shapes = {row.shape for row in x}
    nested = [[a + b for b in range(2)] for a in range(2)]
    return np.stack(rows), table, len(shapes), np.array(nested)


@style
def unpacking(x, log):
    first, *middle, last = x
    (a, b), c = x[:2], [1, 2]
    [d, e] = c
    return first + last + a * d + b * e, len(middle)


@style
def chained(x, log):
    a = b = x.copy()
    b += 1
    ok = 0 < x.shape[0] <= 10 != 5
    return a if ok else x


@style
def slices_and_ellipsis(x, log):
    s = slice(None, None, 2)
    y = x[..., s]
    z = x[::-1, None, 1:]
    return y, z, x[-1, ...]


@style
def conditional_imports(x, log):
    import math as m
    from functools import reduce

    return x * reduce(lambda a, b: a * b, (m.floor(2.5), m.ceil(0.2)))


@style
def global_counter(x, log):
    global COUNT
    COUNT += 1
    return x + 0 * COUNT


COUNT = 0


@style
def default_dict(x, log):
    groups = defaultdict(list)
    for k, row in enumerate(x):
        groups[k % 2].append(row)
    return {k: sum(v) for k, v in groups.items()}


@style
def sorting(x, log):
    rows = sorted(range(len(x)), key=lambda k: -k)
    names = sorted({"b": 2, "a": 1}.items())
    return x[rows] * names[0][1]


@style
def any_all(x, log):
    if all(n > 1 for n in x.shape) and any(n == 4 for n in x.shape):
        return x * 2
    return x


@style
def early_exit_loop(x, log):
    for k in range(10):  # noqa: B007
        if np.abs(x).max() < 0.5:
            break
        x = x * 0.5
    else:
        return x * 0
    return x + k


@style
def del_and_ternaries(x, log):
    y, z = x * 2, x * 3
    del z
    return (y if len(log) % 2 == 0 else x) + (1 if x.size else 0)


@style
def in_place_everywhere(x, log):
    y = x.copy()
    y[0] += 1
    y[:, 1] *= 2
    y[y > 1] = 0
    np.add(y, 1, out=y)
    x[0, 0] = 7
    return y


@style
def type_checks(x, log):
    if isinstance(x, np.ndarray) and callable(np.sum) and hasattr(x, "shape"):
        return x.astype(type(x.sum().item()))
    return None


@style
def complex_literals(x, log):
    return (x + 1j).real, abs(3 + 4j)


@style
def bool_arithmetic(x, log):
    flag = x.sum() > 0
    return flag + 1, flag * x, not flag, -x if flag else x
