"""Convolutions, attention and whole networks: nbcomp against NumPy and the other frameworks.

    python -m benchmarks.networks [--rows resnet18,lstm] [--peers-venv DIR] [--peers torch,onnx]

The others are torch (eager), inductor (torch.compile), onnx (ONNX Runtime), openvino and jax.

Every contestant runs in a process of its own with the same weights and inputs; answers are compared
with the model's own in NumPy first.  Then they take turns, and the table has the medians of all
samples with their quartiles, and how many times as fast nbcomp is as the best of the others.  With
--compile it has the seconds of a first call instead, each in a new process.  Two threads for all,
or one where the process may use one core only.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter, sleep
from typing import IO, Any

import numpy as np

from benchmarks import timing
from benchmarks.network_models import NETWORKS, Network, weights_of

ROOT = Path(__file__).resolve().parent.parent
BUDGET = 0.25  # seconds of samples, per round and contestant
PAUSE = 0.05  # seconds after a turn: threads of the one before stop spinning
THREADS = min(2, len(os.sched_getaffinity(0)))
TITLES = {
    "nbcomp": "nbcomp", "numpy": "NumPy", "torch": "torch", "inductor": "torch.compile",
    "onnx": "ONNX Runtime", "openvino": "OpenVINO", "jax": "JAX",
}  # fmt: skip

Runner = Callable[[], Any]


# ------------------------------------------------------------------------------------ contestants


def _own(row: Network) -> tuple[Any, list[Any]]:
    from nbcomp import nn

    model = row.build(nn).eval()
    shapes = {name: np.shape(value) for name, value in model.state_dict().items()}
    model.load_state_dict(weights_of(shapes))
    return model, row.inputs()


def nbcomp(row: Network) -> Runner:
    """The model, jitted."""
    import nbcomp as compiler

    model, inputs = _own(row)
    function = compiler.jit(model)
    return lambda: function(*inputs)


def numpy(row: Network) -> Runner:
    """The model as it is: its operators are NumPy's functions."""
    model, inputs = _own(row)
    return lambda: model(*inputs)


def _torch_model(row: Network) -> tuple[Any, list[Any]]:
    import torch

    torch.set_num_threads(THREADS)
    torch.set_grad_enabled(False)
    model = row.build(torch.nn).eval()
    state = {k: v for k, v in model.state_dict().items() if "num_batches" not in k}
    made = weights_of({name: tuple(value.shape) for name, value in state.items()})
    model.load_state_dict({k: torch.from_numpy(v) for k, v in made.items()}, strict=False)
    return model, [torch.from_numpy(x) for x in row.inputs()]


def torch(row: Network) -> Runner:
    """The model in eager mode, its kernels those of oneDNN and MKL."""
    model, inputs = _torch_model(row)
    return lambda: model(*inputs).numpy()


def inductor(row: Network) -> Runner:
    """The model by torch.compile, as fast as it can make it with frozen weights."""
    import torch

    model, inputs = _torch_model(row)
    torch._inductor.config.freezing = True
    function = torch.compile(model, mode="max-autotune-no-cudagraphs")
    return lambda: function(*inputs).numpy()


def _exported(row: Network) -> tuple[bytes, dict[str, Any]]:
    """The model as torch exports it to ONNX, and the inputs by their names."""
    import torch as exporter

    model, inputs = _torch_model(row)
    file = io.BytesIO()
    names = list(row.shapes)
    exporter.onnx.export(
        model, tuple(inputs), file, dynamo=False, input_names=names, opset_version=17
    )
    return file.getvalue(), {name: x.numpy() for name, x in zip(names, inputs, strict=True)}


def onnx(row: Network) -> Runner:
    """The exported model in ONNX Runtime at its highest level of optimisation."""
    import onnxruntime

    model, feed = _exported(row)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    session = onnxruntime.InferenceSession(model, options)
    used = {i.name: feed[i.name] for i in session.get_inputs()}
    return lambda: session.run(None, used)[0]


def openvino(row: Network) -> Runner:
    """The exported model in OpenVINO, in float32 as everybody."""
    import openvino as library

    model, feed = _exported(row)
    settings = {
        "INFERENCE_NUM_THREADS": THREADS, "INFERENCE_PRECISION_HINT": "f32",
        "PERFORMANCE_HINT": "LATENCY",
    }  # fmt: skip
    compiled = library.Core().compile_model(library.Core().read_model(model), "CPU", settings)
    request = compiled.create_infer_request()
    used = [feed[port.any_name] for port in compiled.inputs]

    def run() -> Any:
        return request.infer(used, share_inputs=True, share_outputs=True)[0]

    return run


def jax(row: Network) -> Runner:
    """The model over JAX's own functions, jitted with its weights as constants."""
    import jax as library

    from benchmarks import jax_layers

    model = row.build(jax_layers).eval()
    shapes = {name: vars(owner)[key].shape for name, owner, key in model.owners()}
    jax_layers.load(model, weights_of(shapes))
    function, inputs = library.jit(model), [library.numpy.asarray(x) for x in row.inputs()]
    return lambda: np.asarray(function(*inputs))


CONTESTANTS: dict[str, Callable[[Network], Runner]] = {
    "nbcomp": nbcomp,
    "numpy": numpy,
    "torch": torch,
    "inductor": inductor,
    "onnx": onnx,
    "openvino": openvino,
    "jax": jax,
}


def serve(who: str) -> None:
    """Answer commands, a JSON line each: ["first", row], ["time"]."""
    out, sys.stdout = sys.stdout, sys.stderr  # exporters print
    run: Runner = print
    for line in sys.stdin:
        command, *rest = json.loads(line)
        if command == "first":
            run = CONTESTANTS[who](NETWORKS[rest[0]])
            start = perf_counter()
            result = np.asarray(run())
            seconds = perf_counter() - start
            answer: Any = {"seconds": seconds, "sample": sample(result)}
        else:
            answer = timing.samples(run, BUDGET)
        print(json.dumps(answer), file=out, flush=True)


def sample(result: Any) -> list[float]:
    """Enough of a result to compare: some elements, and sums that all elements are in."""
    flat = np.asarray(result, np.float64).ravel()
    some = flat[:: max(1, flat.size // 500)]
    weights = np.cos(np.arange(flat.size))
    return [*some.tolist(), float(flat @ weights) / flat.size, float(np.abs(flat).max())]


class Contestant:
    """The process of one contestant."""

    def __init__(self, who: str, python: str) -> None:
        self.who = who
        command = [python, "-m", "benchmarks.networks", "--serve", who]
        environment = {**os.environ, "OMP_NUM_THREADS": str(THREADS)}
        self.process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=environment,
        )  # fmt: skip

    def ask(self, *command: Any) -> Any:
        """The answer to a command."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        write: IO[str] = self.process.stdin
        write.write(json.dumps(command) + "\n")
        write.flush()
        return json.loads(self.process.stdout.readline())

    def end(self) -> None:
        """End the process."""
        self.process.terminate()
        self.process.wait()


# ------------------------------------------------------------------------------------------ table


def compared(row: Network, contestants: list[Contestant]) -> list[float]:
    """Seconds of everybody's first call.  Raises ValueError where an answer is not NumPy's."""
    wanted = np.array(sample(numpy(row)()))
    seconds = []
    for contestant in contestants:
        answer = contestant.ask("first", row.name)
        far = np.abs(np.array(answer["sample"]) - wanted).max() / np.abs(wanted).max()
        if not far <= row.rtol:
            raise ValueError(f"{contestant.who} is {far:.1e} from NumPy on {row.title}")
        seconds.append(answer["seconds"])
    return seconds


def timed(row: Network, contestants: list[Contestant], rounds: int) -> str:
    """One line of the table."""
    compared(row, contestants)
    taking = [c for c in contestants if c.who != "numpy" or row.numpy]
    samples: dict[str, list[float]] = {c.who: [] for c in taking}
    for turn in range(rounds):
        for contestant in taking if turn % 2 == 0 else taking[::-1]:
            samples[contestant.who] += contestant.ask("time")
            sleep(PAUSE)
    cells = [_time(samples[c.who]) if c.who in samples else "" for c in contestants]
    others = [median(s) for who, s in samples.items() if who != "nbcomp"]
    ratio = min(others) / median(samples["nbcomp"]) if others else float("nan")
    return "| " + " | ".join([row.title, *cells, f"{ratio:.2f}"]) + " |"


def _time(samples: list[float]) -> str:
    low, _, high = quantiles(samples, n=4)
    return f"{1e3 * median(samples):,.3f} ({1e3 * low:,.3f}-{1e3 * high:,.3f})"


def first_calls(rows: list[Network]) -> None:
    """Seconds until the first answer, each in a new process."""
    print("| network | first call | of it compiling |")
    print("|---|--:|--:|")
    for row in rows:
        contestant = Contestant("nbcomp", sys.executable)
        contestant.ask("first", "depthwise")  # what is made ready once per process
        first = contestant.ask("first", row.name)["seconds"]
        again = median(contestant.ask("time"))
        contestant.end()
        print(f"| {row.title} | {first:.2f} s | {first - again:.2f} s |", flush=True)


def table(rows: list[Network], contestants: list[Contestant], rounds: int) -> None:
    """Everybody's times, in milliseconds."""
    heads = [TITLES[c.who] for c in contestants]
    print("| milliseconds | " + " | ".join([*heads, "times as fast as the best other"]) + " |")
    print("|---|" + "--:|" * (len(heads) + 1))
    for row in rows:
        print(timed(row, contestants, rounds), flush=True)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--serve", default="")
    parser.add_argument("--rows", default="")
    parser.add_argument("--peers", default="numpy")
    parser.add_argument("--peers-venv", default="benchmarks/.venv-peers")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--compile", action="store_true")
    options = parser.parse_args()
    if options.serve:
        serve(options.serve)
        return
    wanted = [r for r in options.rows.split(",") if r]
    rows = [NETWORKS[name] for name in wanted or NETWORKS]
    if options.compile:
        first_calls(rows)
        return
    rows = [row for row in rows if row.timed]
    peer = str(Path(options.peers_venv) / "bin" / "python")
    others = [p for p in options.peers.split(",") if p]
    pythons = {"numpy": sys.executable}
    contestants = [
        Contestant(who, pythons.get(who, peer if who != "nbcomp" else sys.executable))
        for who in ["nbcomp", *others]
    ]
    table(rows, contestants, options.rounds)
    for contestant in contestants:
        contestant.end()


if __name__ == "__main__":
    main()
