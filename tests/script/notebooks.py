"""Programs as people keep them in notebooks: whole-array steps, loops over elements, lists, dicts,
random numbers and text side by side; a function and its calls."""

from __future__ import annotations

import math
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

Calls = tuple[tuple[Any, ...], ...]
NOTEBOOKS: dict[str, tuple[Callable[..., Any], Calls]] = {}
RNG = np.random.default_rng(41)
SERIES = np.cumsum(RNG.normal(size=60))
POINTS = np.concatenate([RNG.normal(size=(20, 2)), RNG.normal(size=(25, 2)) + 4])
BOARD = (RNG.random((12, 15)) < 0.35).astype(np.int64)
LINKS = (RNG.random((9, 9)) < 0.3).astype(float)
IMAGE = RNG.random((14, 16)).astype(np.float32)
SYSTEM = RNG.random((8, 8)) + 8 * np.eye(8)
TREE = (
    np.array([0, 1, -1, 0, -1, -1, 1, -1, -1]),
    np.array([0.2, -0.1, 0.0, 1.0, 0.0, 0.0, 0.7, 0.0, 0.0]),
    np.array([1, 2, 0, 4, 0, 0, 7, 0, 0]),
    np.array([6, 3, 0, 5, 0, 0, 8, 0, 0]),
    np.array([0, 0, 3, 0, 5, 1, 0, 2, 4]),
)
SUDOKU = np.array([[1, 0, 3, 0], [0, 4, 0, 2], [2, 0, 0, 3], [0, 0, 2, 0]])


def program(*calls: tuple[Any, ...]) -> Callable[[Any], Any]:
    """Declare a program with the arguments of its calls."""

    def register(function: Any) -> Any:
        NOTEBOOKS[function.__name__] = (function, calls)
        return function

    return register


# --------------------------------------------------------------------------------------- filters


@program((SERIES, 0.1, 1.0), (SERIES[:30].astype(np.float32), 0.5, 2.0))
def kalman(z, q, r):
    x = np.array([z[0], 0.0])
    P = np.eye(2)
    F = np.array([[1.0, 1.0], [0.0, 1.0]])
    H = np.array([[1.0, 0.0]])
    Q, R = q * np.eye(2), np.array([[r]])
    track = np.zeros((len(z), 2))
    for k in range(len(z)):
        x = F @ x
        P = F @ P @ F.T + Q
        y = z[k] - H @ x
        S = H @ P @ H.T + R
        K = P @ H.T / S[0, 0]
        x = x + (K @ y)
        P = (np.eye(2) - K @ H) @ P
        track[k] = x
    return track, P


@program((SERIES, 3, 5), (SERIES[:17], 2, 4))
def exponential_smoothing(x, fast, slow):
    a, b = 2 / (fast + 1), 2 / (slow + 1)
    short = long = float(x[0])
    signals = []
    for i, value in enumerate(x):
        short += a * (value - short)
        long += b * (value - long)
        if i and short > long:
            signals.append(i)
    return signals, short, long


@program((SERIES[:32],), (np.arange(8.0),))
def fft_by_hand(x):
    n = len(x)
    if n == 1:
        return x.astype(complex).real, x * 0.0
    even, even_i = fft_by_hand(x[::2])
    odd, odd_i = fft_by_hand(x[1::2])
    k = np.arange(n // 2)
    c, s = np.cos(-2 * np.pi * k / n), np.sin(-2 * np.pi * k / n)
    re, im = c * odd - s * odd_i, c * odd_i + s * odd
    return np.concatenate([even + re, even - re]), np.concatenate([even_i + im, even_i - im])


# ------------------------------------------------------------------------------------- learning


@program((POINTS, 2, 15), (POINTS[::2], 3, 5))
def kmeans_notebook(points, k, steps):
    centres = points[:k].copy()
    labels = np.zeros(len(points), dtype=int)
    history = []
    for step in range(steps):
        distances = np.sqrt(((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2))
        new = distances.argmin(axis=1)
        if step and (new == labels).all():
            break
        labels = new
        for j in range(k):
            if (labels == j).any():
                centres[j] = points[labels == j].mean(axis=0)
        history.append(float(distances.min(axis=1).sum()))
    return centres, labels, history


@program((SERIES, 12), (SERIES[:20], 5))
def gaussian_mixture(x, steps):
    mu = np.array([x.min(), x.max()])
    var = np.ones(2) * x.var()
    pi = np.ones(2) / 2
    likelihood = []
    for _ in range(steps):
        density = pi * np.exp(-0.5 * (x[:, None] - mu) ** 2 / var) / np.sqrt(2 * np.pi * var)
        total = density.sum(axis=1, keepdims=True)
        r = density / total
        n = r.sum(axis=0)
        mu = (r * x[:, None]).sum(axis=0) / n
        var = (r * (x[:, None] - mu) ** 2).sum(axis=0) / n + 1e-6
        pi = n / len(x)
        likelihood.append(np.log(total).sum())
        if len(likelihood) > 1 and abs(likelihood[-1] - likelihood[-2]) < 1e-8:
            break
    return mu, var, pi, likelihood


@program((POINTS, *TREE), (POINTS[:3] * -1, *TREE))
def tree_predict(x, feature, threshold, left, right, value):
    out = np.zeros(len(x), dtype=np.int64)
    for i in range(len(x)):
        node = 0
        while feature[node] >= 0:
            node = left[node] if x[i, feature[node]] <= threshold[node] else right[node]
        out[i] = value[node]
    return out


@program((POINTS, 30, 0.1), (POINTS[:9], 4, 1.0))
def ridge_by_descent(points, steps, rate):
    X = np.column_stack([np.ones(len(points)), points[:, 0]])
    y, w, losses = points[:, 1], np.zeros(2), []
    for t in range(1, steps + 1):
        gradient = X.T @ (X @ w - y) / len(y) + 0.01 * w
        w -= rate / np.sqrt(t) * gradient
        losses.append(np.mean((X @ w - y) ** 2).item())
    best = int(np.argmin(losses))
    return w, best, losses[best]


@program((SERIES, 20, 3), (SERIES[:10], 7, 0))
def bootstrap(x, n, seed):
    rng = np.random.default_rng(seed)
    means = np.empty(n)
    for i in range(n):
        sample = x[rng.integers(0, len(x), len(x))]
        means[i] = sample.mean()
    return means.mean(), np.percentile(means, [2.5, 97.5])


# ------------------------------------------------------------------------------------- sequences


@program((RNG.integers(0, 3, 25), RNG.random((3, 3)), RNG.random((3, 3))))
def viterbi_path(obs, trans, emit):
    T, S = len(obs), len(trans)
    logp = np.log(trans)
    score = np.log(emit[:, obs[0]])
    back = np.zeros((T, S), dtype=np.int64)
    for t in range(1, T):
        total = score[:, None] + logp
        back[t] = np.argmax(total, axis=0)
        score = np.max(total, axis=0) + np.log(emit[:, obs[t]])
    best = int(np.argmax(score))
    path = [best]
    for t in range(T - 1, 0, -1):
        best = int(back[t, best])
        path.insert(0, best)
    return path, float(score.max())


@program((RNG.random((6, 4)), 3), (RNG.random((5, 7)).astype(np.float32), 2))
def beam_search(probabilities, width):
    beams = [([], 0.0)]
    for row in probabilities:
        candidates = []
        for sequence, score in beams:
            for j in range(len(row)):
                candidates.append(([*sequence, j], score - math.log(row[j] + 1e-9)))
        candidates.sort(key=lambda c: c[1])
        beams = candidates[:width]
    return beams


@program(("the cat sat on the mat the cat ran", 6), ("a b a c a b a", 4))
def markov_text(text, n):
    following = defaultdict(list)
    words = text.split()
    for a, b in pairwise(words):
        following[a].append(b)
    state, out = words[0], []
    for i in range(n):
        out.append(state)
        choices = following.get(state) or [words[0]]
        state = choices[i % len(choices)]
    return " ".join(out)


@program((b"hello world",), (bytes(range(40)),))
def crc32(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0xEDB88320 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


@program((np.array([30, 35, 15, 5, 10, 20, 25]),))
def matrix_chain_order(p):
    n = len(p) - 1
    cost = np.zeros((n, n))
    split = np.zeros((n, n), dtype=int)
    for length in range(2, n + 1):
        for i in range(n - length + 1):
            j = i + length - 1
            cost[i, j] = np.inf
            for k in range(i, j):
                q = cost[i, k] + cost[k + 1, j] + p[i] * p[k + 1] * p[j + 1]
                if q < cost[i, j]:
                    cost[i, j], split[i, j] = q, k
    return cost[0, n - 1], split


# ---------------------------------------------------------------------------------------- graphs


@program((LINKS, 0.85, 1e-8), (LINKS[:5, :5], 0.5, 1e-4))
def page_rank(links, d, tol):
    n = len(links)
    out = links.sum(axis=1)
    M = np.where(out[:, None] > 0, links / np.maximum(out, 1)[:, None], 1.0 / n).T
    rank = np.full(n, 1 / n)
    rounds = 0
    while True:
        new = (1 - d) / n + d * (M @ rank)
        rounds += 1
        if np.abs(new - rank).sum() < tol or rounds > 100:
            return new, rounds
        rank = new


@program((LINKS, 0), (LINKS[:4, :4], 2))
def breadth_first(links, start):
    distance = {start: 0}
    queue = deque([start])
    while queue:
        node = queue.popleft()
        for other in np.flatnonzero(links[node]):
            other = int(other)
            if other not in distance:
                distance[other] = distance[node] + 1
                queue.append(other)
    return [distance.get(k, -1) for k in range(len(links))]


@program((LINKS + 9 * (LINKS == 0), 0))
def dijkstra_dense(weights, source):
    n = len(weights)
    distance = np.full(n, np.inf)
    distance[source] = 0
    done = np.zeros(n, dtype=bool)
    for _ in range(n):
        u = int(np.argmin(np.where(done, np.inf, distance)))
        done[u] = True
        distance = np.minimum(distance, distance[u] + weights[u])
    return distance


# ------------------------------------------------------------------------------------ simulation


@program((BOARD, 4), (BOARD[:5, :6], 2))
def life(board, steps):
    for _ in range(steps):
        around = sum(
            np.roll(np.roll(board, i, 0), j, 1)
            for i in (-1, 0, 1)
            for j in (-1, 0, 1)
            if (i, j) != (0, 0)
        )
        board = ((around == 3) | ((board == 1) & (around == 2))).astype(board.dtype)
    return board, int(board.sum())


@program((5, 80, 1), (3, 40, 7))
def integrate_and_fire(n, steps, seed):
    rng = np.random.default_rng(seed)
    v = np.full(n, -65.0)
    spikes = []
    for t in range(steps):
        current = 20 + 5 * rng.standard_normal(n)
        v += 0.5 * (-(v + 65.0) + current) / 10
        fired = v >= -50.0
        for k in np.where(fired)[0]:
            spikes.append((t, int(k)))
        v[fired] = -65.0
    return v, spikes


@program((np.array([4.0, -3.0]), 60, 2), (np.array([1.0, 1.0, 2.0]), 25, 5))
def annealing(x, steps, seed):
    rng = np.random.default_rng(seed)

    def energy(p):
        return float((p**2).sum() - 3 * np.cos(2 * np.pi * p).sum())

    best, best_energy = x.copy(), energy(x)
    current, T = best_energy, 5.0
    for _ in range(steps):
        proposal = x + rng.normal(size=x.shape) * 0.5
        e = energy(proposal)
        if e < current or rng.random() < math.exp((current - e) / T):
            x, current = proposal, e
            if e < best_energy:
                best, best_energy = x.copy(), e
        T *= 0.95
    return best, best_energy


@program((np.array([1.0, 0.0]), 0.0, 2.0, 1e-6), (np.array([0.5, -1.0]), 0.0, 1.0, 1e-4))
def runge_kutta_45(y, t, end, tol):
    def f(t, y):
        return np.array([y[1], (1 - y[0] ** 2) * y[1] - y[0]])

    h, times, states = 0.1, [t], [y]
    while t < end:
        h = min(h, end - t)
        k1 = f(t, y)
        k2 = f(t + h / 4, y + h * k1 / 4)
        k3 = f(t + 3 * h / 8, y + h * (3 * k1 + 9 * k2) / 32)
        k4 = f(t + 12 * h / 13, y + h * (1932 * k1 - 7200 * k2 + 7296 * k3) / 2197)
        k5 = f(t + h, y + h * (439 * k1 / 216 - 8 * k2 + 3680 * k3 / 513 - 845 * k4 / 4104))
        low = -8 * k1 / 27 + 2 * k2 - 3544 * k3 / 2565 + 1859 * k4 / 4104 - 11 * k5 / 40
        k6 = f(t + h / 2, y + h * low)
        apart = k1 / 360 - 128 * k3 / 4275 - 2197 * k4 / 75240 + k5 / 50 + 2 * k6 / 55
        error = np.abs(h * apart).max()
        if error <= tol:
            t += h
            y = y + h * (25 * k1 / 216 + 1408 * k3 / 2565 + 2197 * k4 / 4104 - k5 / 5)
            times.append(t)
            states.append(y)
        h *= 0.9 * (tol / max(error, 1e-12)) ** 0.2
    return np.array(times), np.array(states)


@program((SYSTEM, SYSTEM[0], 40), (SYSTEM[:3, :3], SYSTEM[1, :3], 5))
def gauss_seidel_rows(a, b, most):
    x = np.zeros_like(b)
    for it in range(most):  # noqa: B007
        old = x.copy()
        for i in range(len(b)):
            s = a[i, :i] @ x[:i] + a[i, i + 1 :] @ x[i + 1 :]
            x[i] = (b[i] - s) / a[i, i]
        if np.linalg.norm(x - old) < 1e-10:
            break
    return x, it


@program((6, 4), (3, 4))
def ray_march(width, height):
    image = np.zeros((height, width))
    for py in range(height):
        for px in range(width):
            direction = np.array([px / width - 0.5, py / height - 0.5, 1.0])
            direction = direction / np.sqrt((direction**2).sum())
            depth = 0.0
            for _ in range(30):
                point = depth * direction + np.array([0.0, 0.0, -3.0])
                d = math.sqrt(point[0] ** 2 + point[1] ** 2 + point[2] ** 2) - 1.0
                if d < 1e-3:
                    image[py, px] = 1 / (1 + depth)
                    break
                depth += d
                if depth > 10:
                    break
    return image


# ---------------------------------------------------------------------------------------- images


@program((IMAGE,), (IMAGE[:5, :5].astype(np.float64),))
def sobel_loops(image):
    gx = np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]])
    gy = gx.T
    h, w = image.shape
    out = np.zeros((h - 2, w - 2))
    for i in range(1, h - 1):
        for j in range(1, w - 1):
            patch = image[i - 1 : i + 2, j - 1 : j + 2]
            out[i - 1, j - 1] = np.hypot((patch * gx).sum(), (patch * gy).sum())
    return out


@program((12, 3, 5), (6, 2, 9))
def perlin(n, cells, seed):
    rng = np.random.default_rng(seed)
    angles = rng.random((cells + 1, cells + 1)) * 2 * np.pi
    gradients = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    x = np.linspace(0, cells, n, endpoint=False)
    i = x.astype(int)
    f = x - i
    smooth = f * f * f * (f * (f * 6 - 15) + 10)
    out = np.zeros((n, n))
    for r in range(n):
        for c in range(n):
            corners = []
            for di in (0, 1):
                for dj in (0, 1):
                    g = gradients[i[r] + di, i[c] + dj]
                    corners.append(g[0] * (f[r] - di) + g[1] * (f[c] - dj))
            top = corners[0] + smooth[c] * (corners[1] - corners[0])
            low = corners[2] + smooth[c] * (corners[3] - corners[2])
            out[r, c] = top + smooth[r] * (low - top)
    return out


# ------------------------------------------------------------------------------- search and state


@program((SUDOKU,))
def sudoku(grid):
    grid = grid.copy()
    n = len(grid)
    box = int(n**0.5)

    def fits(r, c, k):
        if (grid[r] == k).any() or (grid[:, c] == k).any():
            return False
        r0, c0 = r // box * box, c // box * box
        return not (grid[r0 : r0 + box, c0 : c0 + box] == k).any()

    def solve():
        for r in range(n):
            for c in range(n):
                if grid[r, c] == 0:
                    for k in range(1, n + 1):
                        if fits(r, c, k):
                            grid[r, c] = k
                            if solve():
                                return True
                            grid[r, c] = 0
                    return False
        return True

    return solve(), grid


@program((RNG.integers(0, 6, 40), 3), (RNG.integers(0, 4, 15), 2))
def least_recently_used(keys, size):
    cache, hits = OrderedDict(), 0
    for key in keys:
        key = int(key)
        if key in cache:
            cache.move_to_end(key)
            hits += 1
        else:
            cache[key] = True
            if len(cache) > size:
                cache.popitem(last=False)
    return hits, list(cache)


@program((SERIES,), (RNG.integers(0, 50, 20),))
def quicksort_on_arrays(x):
    if len(x) <= 1:
        return x
    pivot = x[len(x) // 2]
    return np.concatenate(
        [quicksort_on_arrays(x[x < pivot]), x[x == pivot], quicksort_on_arrays(x[x > pivot])]
    )


@program((SERIES[:20], 5), (SERIES, 8))
def running_stats(x, w):
    window, out = [], []
    for value in x:
        window.append(float(value))
        if len(window) > w:
            window.pop(0)
        a = np.array(window)
        out.append((a.mean(), a.std(), a.max() - a.min()))
    return np.array(out)


@program((SERIES, 10.0), (SERIES[:5], 3.5))
def portfolio(prices, cash):
    shares, trades = 0, {}
    for day in range(1, len(prices)):
        change = prices[day] - prices[day - 1]
        if change > 0 and cash >= abs(prices[day]):
            cash -= abs(float(prices[day]))
            shares += 1
            trades[day] = "buy"
        elif change < 0 and shares:
            cash += abs(float(prices[day]))
            shares -= 1
            trades[day] = "sell"
    return cash, shares, trades
