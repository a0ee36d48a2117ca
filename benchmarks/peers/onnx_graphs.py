"""The workloads as ONNX graphs, for ONNX Runtime, OpenVINO and TVM.

`Symbol` stands for an array while the workload's own source runs with this module's names in the
place of `np`; every operation it meets becomes an ONNX node.  Shapes are known, so that slices and
the frame around an in-place write can be said with constants.
"""

from __future__ import annotations

from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.peers import Prepared, as_tuple
from benchmarks.workloads import Array, Workload, spelled

OPSET, IR_VERSION = 18, 8  # of the same release of the standard, read by every runtime


class Recorder:
    """Collects nodes and constants."""

    def __init__(self) -> None:
        self.onnx: Any = import_module("onnx")
        self.nodes: list[Any] = []
        self.constants: dict[tuple[Any, ...], str] = {}
        self.initializers: list[Any] = []

    def constant(self, value: Any, dtype: Any) -> str:
        """The name of an initializer with this value, made once."""
        array = np.asarray(value, dtype)
        key = (array.tobytes(), array.dtype.str, array.shape)
        if key not in self.constants:
            self.constants[key] = f"c{len(self.constants)}"
            tensor = self.onnx.numpy_helper.from_array(array, self.constants[key])
            self.initializers.append(tensor)
        return self.constants[key]

    def node(self, kind: str, *names: str, like: Array, **attributes: Any) -> Symbol:
        """A new node; `like` has the result's dtype and shape."""
        name = f"v{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(kind, names, [name], **attributes))
        return Symbol(self, name, like)


def _hollow(array: Any) -> Array:
    """Dtype and shape of an array without its storage."""
    array = np.asarray(array)
    return np.broadcast_to(np.zeros((), array.dtype), array.shape)


class Symbol:
    """An array of the graph being built."""

    def __init__(self, recorder: Recorder, name: str, like: Array) -> None:
        self.recorder, self.name, self.like = recorder, name, _hollow(like)

    def _binary(self, kind: str, other: Any, swapped: bool = False) -> Symbol:
        if isinstance(other, Symbol):
            name, like = other.name, other.like
        else:
            name = self.recorder.constant(other, self.like.dtype)
            like = _hollow(np.zeros((), self.like.dtype))
        shape = np.broadcast_shapes(self.like.shape, like.shape)
        names = (name, self.name) if swapped else (self.name, name)
        result = np.broadcast_to(np.zeros((), self.like.dtype), shape)
        return self.recorder.node(kind, *names, like=result)

    def __add__(self, other: Any) -> Symbol:
        return self._binary("Add", other)

    def __sub__(self, other: Any) -> Symbol:
        return self._binary("Sub", other)

    def __mul__(self, other: Any) -> Symbol:
        return self._binary("Mul", other)

    def __truediv__(self, other: Any) -> Symbol:
        return self._binary("Div", other)

    __radd__, __rmul__ = __add__, __mul__

    def __rsub__(self, other: Any) -> Symbol:
        return self._binary("Sub", other, swapped=True)

    def __rtruediv__(self, other: Any) -> Symbol:
        return self._binary("Div", other, swapped=True)

    def __neg__(self) -> Symbol:
        return self.recorder.node("Neg", self.name, like=self.like)

    def __matmul__(self, other: Symbol) -> Symbol:
        shape = (*self.like.shape[:-1], other.like.shape[-1])
        result = np.broadcast_to(np.zeros((), self.like.dtype), shape)
        return self.recorder.node("MatMul", self.name, other.name, like=result)

    @property
    def T(self) -> Symbol:
        """All axes reversed."""
        return self.recorder.node("Transpose", self.name, like=self.like.T)

    def __getitem__(self, index: Any) -> Symbol:
        """Slices with step 1, None and whole numbers: Slice, Squeeze, then Unsqueeze."""
        entries = _without_ellipsis(index, self.like.ndim)
        boxes = [e for e in entries if e is not None]
        spans = [_span(e, n) for e, n in zip(boxes, self.like.shape, strict=False)]
        result = self._slice(spans)
        dropped = [axis for axis, e in enumerate(boxes) if isinstance(e, int)]
        result = result._reshape_axes("Squeeze", dropped)
        kept = [e for e in entries if not isinstance(e, int)]
        return result._reshape_axes("Unsqueeze", [i for i, e in enumerate(kept) if e is None])

    def _slice(self, spans: list[tuple[int, int]]) -> Symbol:
        cut = [i for i, (a, b) in enumerate(spans) if (a, b) != (0, self.like.shape[i])]
        if not cut:
            return self
        vectors = ([spans[i][0] for i in cut], [spans[i][1] for i in cut], cut)
        names = [self.recorder.constant(v, np.int64) for v in vectors]
        like = self.like[tuple(slice(a, b) for a, b in spans)]
        return self.recorder.node("Slice", self.name, *names, like=like)

    def _reshape_axes(self, kind: str, axes: list[int]) -> Symbol:
        if not axes:
            return self
        like = (np.squeeze if kind == "Squeeze" else np.expand_dims)(self.like, tuple(axes))
        name = self.recorder.constant(axes, np.int64)
        return self.recorder.node(kind, self.name, name, like=like)

    @property
    def at(self) -> At:
        """As in JAX: `x.at[1:-1, 1:-1].set(values)`."""
        return At(self)

    def reduce(self, kind: str, axis: int | None, keepdims: bool) -> Symbol:
        """ReduceSum, ReduceMax or ReduceMean over one axis or all."""
        like = np.sum(self.like, axis=axis, keepdims=keepdims)
        names = [] if axis is None else [self.recorder.constant([axis], np.int64)]
        return self.recorder.node(kind, self.name, *names, like=like, keepdims=int(keepdims))


class At:
    """The inside of a two-dimensional array, to be replaced."""

    def __init__(self, x: Symbol) -> None:
        self.x = x

    def __getitem__(self, box: Any) -> At:
        assert box == (slice(1, -1), slice(1, -1))
        return self

    def set(self, values: Symbol) -> Symbol:
        """Two concatenations, which every runtime does as copies (scattering is far slower)."""
        x = self.x
        middle = _concat([x[1:-1, :1], values, x[1:-1, -1:]], 1)
        return _concat([x[:1], middle, x[-1:]], 0)


def _without_ellipsis(index: Any, ndim: int) -> list[Any]:
    entries = list(index) if isinstance(index, tuple) else [index]
    missing = ndim - sum(e is not None and e is not Ellipsis for e in entries)
    if Ellipsis in entries:
        at = entries.index(Ellipsis)
        return entries[:at] + [slice(None)] * missing + entries[at + 1 :]
    return entries + [slice(None)] * missing


def _span(entry: Any, n: int) -> tuple[int, int]:
    if isinstance(entry, int):
        return (entry % n, entry % n + 1)
    start, stop, _ = entry.indices(n)
    return (start, stop)


def _concat(parts: list[Symbol], axis: int) -> Symbol:
    like = np.concatenate([p.like for p in parts], axis)
    return parts[0].recorder.node("Concat", *(p.name for p in parts), like=like, axis=axis)


def _unary(kind: str) -> Any:
    return lambda x: x.recorder.node(kind, x.name, like=x.like)


def _reduction(kind: str) -> Any:
    return lambda x, axis=None, keepdims=False: x.reduce(kind, axis, keepdims)


def _swapaxes(x: Symbol, a: int, b: int) -> Symbol:
    order = list(range(x.like.ndim))
    order[a], order[b] = order[b], order[a]
    return x.recorder.node("Transpose", x.name, like=np.swapaxes(x.like, a, b), perm=order)


NAMES = SimpleNamespace(
    tanh=_unary("Tanh"),
    exp=_unary("Exp"),
    log=_unary("Log"),
    sqrt=_unary("Sqrt"),
    maximum=lambda x, low: x._binary("Max", low),
    max=_reduction("ReduceMax"),
    sum=_reduction("ReduceSum"),
    mean=_reduction("ReduceMean"),
    swapaxes=_swapaxes,
)


def model(workload: Workload, arrays: dict[str, Array]) -> Any:
    """The workload as an ONNX model whose inputs carry the workload's argument names."""
    recorder = Recorder()
    helper = recorder.onnx.helper
    function = spelled(workload.functional or workload.function, NAMES)
    outputs = as_tuple(function(*(Symbol(recorder, name, a) for name, a in arrays.items())))

    def described(name: str, like: Array) -> Any:
        kind = helper.np_dtype_to_tensor_dtype(like.dtype)
        return helper.make_tensor_value_info(name, kind, like.shape)

    graph = helper.make_graph(
        recorder.nodes,
        workload.name,
        [described(name, a) for name, a in arrays.items()],
        [described(o.name, o.like) for o in outputs],
        initializer=recorder.initializers,
    )
    opsets = [helper.make_opsetid("", OPSET)]
    made = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)
    recorder.onnx.checker.check_model(made)
    return made


def prepare_ort(workload: Workload, arrays: dict[str, Array]) -> Prepared:
    """An inference session with default options; the first call makes it."""
    onnxruntime = import_module("onnxruntime")
    data = model(workload, arrays).SerializeToString()
    session: list[Any] = []

    def call() -> Any:
        if not session:
            providers = ["CPUExecutionProvider"]
            session.append(onnxruntime.InferenceSession(data, providers=providers))
        return session[0].run(None, arrays)

    return Prepared(call, lambda result: [np.asarray(r) for r in result])


def prepare_openvino(workload: Workload, arrays: dict[str, Array]) -> Prepared:
    """Compiled for latency in float32 (its default may round to bfloat16); inputs are shared."""
    openvino = import_module("openvino")
    data = model(workload, arrays).SerializeToString()
    core = openvino.Core()
    options = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    request: list[Any] = []

    def call() -> Any:
        if not request:
            network = core.read_model(data)
            request.append(core.compile_model(network, "CPU", options).create_infer_request())
        outputs = request[0].infer(arrays, share_inputs=True, share_outputs=True)
        return list(outputs.values())

    return Prepared(call, lambda result: [np.array(r) for r in result])


def prepare_tvm(workload: Workload, arrays: dict[str, Array]) -> Prepared:
    """Relax with its default, untuned pipeline for this machine's CPU."""
    tvm = import_module("tvm")
    relax, machine = import_module("tvm.relax"), import_module("benchmarks.machine")
    from_onnx = import_module("tvm.relax.frontend.onnx").from_onnx
    proto = model(workload, arrays)
    target = tvm.target.Target({"kind": "llvm", "mcpu": machine.llvm_cpu_name()})
    device = tvm.cpu()
    values = [tvm.runtime.tensor(a, device) for a in arrays.values()]
    entry: list[Any] = []

    def call() -> Any:
        if not entry:
            with target:
                module = relax.get_pipeline("zero")(from_onnx(proto))
                executable = tvm.compile(module, target=target)
            entry.append(relax.VirtualMachine(executable, device)["main"])
        return entry[0](*values)

    return Prepared(call, lambda result: [r.numpy() for r in _flat(result)])


def _flat(result: Any) -> list[Any]:
    return [result] if hasattr(result, "numpy") else list(result)
