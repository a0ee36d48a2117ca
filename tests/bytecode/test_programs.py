"""Small programs in the shape of those people publish: they do what Python does."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp.jitted import Jit
from tests.bytecode.test_random_programs import differs

RNG = np.random.default_rng(7)


def kmeans(points: Any, k: int, rounds: int = 20) -> Any:
    centres = points[:k].copy()
    for step in range(rounds):
        distances = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
        labels = distances.argmin(axis=1)
        moved = 0.0
        for j in range(k):
            mine = points[labels == j]
            if len(mine):
                new = mine.mean(axis=0)
                moved += float(np.abs(new - centres[j]).sum())
                centres[j] = new
        if moved < 1e-9:
            print("converged after", step)
            break
    return centres, labels


def kalman(measured: Any, process: float = 1e-3, noise: float = 0.1) -> Any:
    transition = np.array([[1.0, 1.0], [0.0, 1.0]])
    observe = np.array([[1.0, 0.0]])
    state, cov = np.zeros((2, 1)), np.eye(2)
    track = []
    for z in measured:
        state = transition @ state
        cov = transition @ cov @ transition.T + process * np.eye(2)
        gain = cov @ observe.T / (observe @ cov @ observe.T + noise)
        state = state + gain * (z - observe @ state)
        cov = (np.eye(2) - gain @ observe) @ cov
        track.append(state[0, 0].item())
    return np.array(track), cov


def pagerank(links: Any, damping: float = 0.85, tolerance: float = 1e-10) -> Any:
    n = links.shape[0]
    out = links.sum(axis=1, keepdims=True)
    walk = np.where(out > 0, links / np.maximum(out, 1), 1.0 / n).T
    rank = np.full(n, 1.0 / n)
    for iteration in range(200):
        new = damping * (walk @ rank) + (1 - damping) / n
        change = np.abs(new - rank).sum()
        rank = new
        if change < tolerance:
            return rank, iteration
    raise RuntimeError("no convergence")


def life(board: Any, generations: int) -> Any:
    history = []
    for _ in range(generations):
        around = sum(
            np.roll(np.roll(board, i, 0), j, 1)
            for i in (-1, 0, 1)
            for j in (-1, 0, 1)
            if (i, j) != (0, 0)
        )
        board = ((around == 3) | ((board == 1) & (around == 2))).astype(np.int64)
        history.append(int(board.sum()))
        if not board.any():
            break
    return board, history


def filters(signal: Any, taps: int = 5) -> Any:
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(taps) / (taps - 1))
    window = window / window.sum()
    padded = np.concatenate([np.zeros(taps - 1), signal])
    smooth = np.zeros_like(signal)
    for k, weight in enumerate(window):
        smooth += weight * padded[k : k + len(signal)]
    peak = float(np.abs(smooth).max())
    level = 20 * math.log10(peak + 1e-12)
    if level > -3:
        print(f"clipping at {level:.1f} dB")
        smooth = smooth / peak
    return smooth, round(level, 6)


class Regression:
    """Gradient descent with a log, as in a hundred tutorials."""

    def __init__(self, rate: float = 0.1, epochs: int = 60) -> None:
        self.rate, self.epochs = rate, epochs
        self.w: Any = None
        self.losses: list[float] = []

    def loss(self, x: Any, y: Any) -> Any:
        return ((x @ self.w - y) ** 2).mean()

    def fit(self, x: Any, y: Any) -> Any:
        self.w = np.zeros(x.shape[1])
        for epoch in range(self.epochs):
            gradient = 2 * x.T @ (x @ self.w - y) / len(y)
            self.w = self.w - self.rate * gradient
            self.losses.append(float(self.loss(x, y)))
            if epoch % 20 == 0:
                print(f"epoch {epoch}: {self.losses[-1]:.4f}")
        return self.w


def regression(x: Any, y: Any) -> Any:
    model = Regression()
    return model.fit(x, y), model.losses


def power_iteration(a: Any, seed: int = 0) -> Any:
    v = np.random.default_rng(seed).normal(size=len(a))
    value = 0.0
    while True:
        w = a @ v
        new = float(np.linalg.norm(w))
        v = w / new
        if abs(new - value) < 1e-12:
            return value, np.abs(v)
        value = new


def trained_network(x: Any, y: Any) -> Any:
    rng = np.random.default_rng(1)
    params = {"w1": rng.normal(size=(2, 8)), "b1": np.zeros(8), "w2": rng.normal(size=(8, 1))}
    start = time.perf_counter()
    for epoch in range(30):
        hidden = np.tanh(x @ params["w1"] + params["b1"])
        error = hidden @ params["w2"] - y
        back = (error @ params["w2"].T) * (1 - hidden**2)
        grads = {"w1": x.T @ back, "b1": back.sum(axis=0), "w2": hidden.T @ error}
        for name in params:
            params[name] -= 0.01 * grads[name] / len(x)
        if epoch % 10 == 0:
            print(epoch, f"{float((error**2).mean()):.5f}")
    if time.perf_counter() < start:
        raise RuntimeError("time goes backwards")
    return params


def monte_carlo(n: int) -> Any:
    rng = np.random.default_rng(3)
    inside = 0
    for _ in range(5):
        p = rng.random((n, 2))
        inside += int(((p**2).sum(axis=1) < 1).sum())
    return 4 * inside / (5 * n)


def newton(f: Any, x: Any) -> Any:
    for _ in range(50):
        step = f(x) / ((f(x + 1e-6) - f(x - 1e-6)) / 2e-6)
        x = x - step
        if np.all(np.abs(step) < 1e-12):
            break
    return x


def cholesky(a: Any) -> Any:
    n = len(a)
    lower = np.zeros_like(a)
    for i in range(n):
        for j in range(i + 1):
            rest = a[i, j] - lower[i, :j] @ lower[j, :j]
            if i == j:
                if rest <= 0:
                    raise np.linalg.LinAlgError("not positive definite")
                lower[i, j] = np.sqrt(rest)
            else:
                lower[i, j] = rest / lower[j, j]
    return lower


SPD = RNG.random((6, 6))
SPD = SPD @ SPD.T + 6 * np.eye(6)
POINTS = RNG.normal(size=(60, 2)) + RNG.integers(0, 3, size=(60, 1)) * 5
LINKS = (RNG.random((12, 12)) < 0.3).astype(float)
BOARD = (RNG.random((16, 16)) < 0.4).astype(np.int64)
DATA = RNG.normal(size=(50, 3))

PROGRAMS: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (kmeans, (POINTS, 3)),
    (kalman, (np.linspace(0, 5, 25) + RNG.normal(size=25) * 0.1,)),
    (pagerank, (LINKS,)),
    (life, (BOARD, 12)),
    (filters, (RNG.normal(size=64),)),
    (filters, (RNG.normal(size=64) * 0.01,)),
    (regression, (DATA, DATA @ np.array([1.0, -2.0, 0.5]))),
    (power_iteration, (SPD,)),
    (trained_network, (RNG.normal(size=(32, 2)), RNG.normal(size=(32, 1)))),
    (monte_carlo, (200,)),
    (newton, (lambda v: v**3 - 2, np.array([1.0, 2.0, 3.0]))),
    (cholesky, (SPD,)),
    (cholesky, (-SPD,)),
]


@pytest.mark.parametrize(("function", "args"), PROGRAMS, ids=lambda v: getattr(v, "__name__", ""))
def test_programs(
    function: Callable[..., Any], args: tuple[Any, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    f: Jit = nbcomp.jit(function)
    for _ in range(3):
        wanted, text = outcome(function, args), capsys.readouterr().out
        got, printed = outcome(f, args), capsys.readouterr().out
        assert not differs(got, wanted)
        assert printed == text
    graphs = f.explain().graphs
    assert graphs


def outcome(function: Callable[..., Any], args: tuple[Any, ...]) -> list[Any]:
    """The result or the error, and the arguments afterwards."""
    given = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nbcomp.NumpyFallback)
        warnings.simplefilter("ignore", nbcomp.RecompileLimit)
        try:
            result = function(*given)
        except Exception as error:
            result = f"{type(error).__name__}: {error}"
    return [result, given]
