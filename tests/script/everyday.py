"""Programs of many kinds as people type them (dynamic programming, graphs, text as numbers,
numerical methods, learning from scratch, simulation, images, objects): a function and its calls."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial, reduce
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

Calls = tuple[tuple[Any, ...], ...]
EVERYDAY: dict[str, tuple[Callable[..., Any], Calls]] = {}
RNG = np.random.default_rng(23)
GRID = RNG.integers(0, 9, (6, 7))
FLOATS = RNG.normal(size=12)
POINTS = RNG.normal(size=(15, 2))
LABELS = (POINTS[:, 0] + POINTS[:, 1] > 0).astype(np.int64)
IMAGE = RNG.integers(0, 256, (8, 9)).astype(np.uint8)
WALLS = (RNG.random((7, 7)) < 0.3).astype(np.int64)
WALLS[0, 0] = WALLS[6, 6] = 0
EDGES = np.array([[0, 1], [1, 2], [2, 3], [3, 4], [0, 4], [1, 3]])
WEIGHTS = np.array([4.0, 1.5, 2.0, 7.0, 11.0, 3.0])
ADJACENCY = (RNG.random((6, 6)) < 0.4).astype(np.int64)
TEXT = np.frombuffer(b"the quick brown fox jumps over the lazy dog", np.uint8).astype(np.int64)
WORD = np.frombuffer(b"abracadabra", np.uint8).astype(np.int64)
BANDED = np.diag(np.full(6, 4.0)) + np.diag(np.ones(5), 1) + np.diag(np.ones(5), -1)


def program(*calls: tuple[Any, ...]) -> Callable[[Any], Any]:
    """Declare a program with the arguments of its calls."""

    def register(function: Any) -> Any:
        EVERYDAY[function.__name__] = (function, calls)
        return function

    return register


# ----------------------------------------------------------------------------- dynamic programming


@program((np.array([10, 9, 2, 5, 3, 7, 101, 18]),), (np.array([3, 3, 3]),))
def longest_increasing(nums):
    best = np.ones(len(nums), dtype=int)
    for i in range(len(nums)):
        for j in range(i):
            if nums[j] < nums[i] and best[j] + 1 > best[i]:
                best[i] = best[j] + 1
    return best.max()


@program((WORD, TEXT[:12]), (TEXT[:9], TEXT[3:14]))
def common_subsequence(a, b):
    table = np.zeros((len(a) + 1, len(b) + 1), dtype=np.int32)
    for i, x in enumerate(a, 1):
        for j, y in enumerate(b, 1):
            if x == y:
                table[i, j] = table[i - 1, j - 1] + 1
            else:
                table[i, j] = max(table[i - 1, j], table[i, j - 1])
    i, j = len(a), len(b)
    out = []
    while i > 0 and j > 0:
        if a[i - 1] == b[j - 1]:
            out.append(int(a[i - 1]))
            i -= 1
            j -= 1
        elif table[i - 1, j] >= table[i, j - 1]:
            i -= 1
        else:
            j -= 1
    return table[-1, -1], out[::-1]


@program((GRID,), (GRID[:2] * 1.5,))
def cheapest_path(cost):
    rows, cols = cost.shape
    total = cost.astype(float)
    for r in range(rows):
        for c in range(cols):
            if r == 0 and c == 0:
                continue
            above = total[r - 1, c] if r > 0 else math.inf
            left = total[r, c - 1] if c > 0 else math.inf
            total[r, c] += min(above, left)
    return total[-1, -1]


@program((np.array([1, 5, 8, 9, 10, 17, 17, 20]), 8), (np.array([2, 5, 7, 8]), 4))
def rod_cutting(prices, n):
    value = [0] * (n + 1)
    for size in range(1, n + 1):
        value[size] = max(prices[cut - 1] + value[size - cut] for cut in range(1, size + 1))
    return value[n]


@program((np.array([1, 5, 11, 5]),), (np.array([1, 2, 5]),))
def can_split(nums):
    total = int(nums.sum())
    if total % 2:
        return False
    half = total // 2
    reach = np.zeros(half + 1, bool)
    reach[0] = True
    for n in nums:
        for s in range(half, n - 1, -1):
            reach[s] |= reach[s - n]
    return bool(reach[half])


@program((np.array([0, 1, 0, 2, 1, 0, 1, 3, 2, 1, 2, 1]),), (np.array([4, 2, 0, 3, 2, 5]),))
def trapped_water(height):
    left, right = 0, len(height) - 1
    left_max = right_max = water = 0
    while left < right:
        if height[left] < height[right]:
            left_max = max(left_max, height[left])
            water += left_max - height[left]
            left += 1
        else:
            right_max = max(right_max, height[right])
            water += right_max - height[right]
            right -= 1
    return water


@program((WORD,), (TEXT[:15],))
def longest_palindrome(s):
    n = len(s)
    start, length = 0, 1
    for center in range(n):
        for lo, hi in ((center, center), (center, center + 1)):
            while lo >= 0 and hi < n and s[lo] == s[hi]:
                if hi - lo + 1 > length:
                    start, length = lo, hi - lo + 1
                lo -= 1
                hi += 1
    return s[start : start + length].copy()


# ----------------------------------------------------------------------------------------- graphs


@program((EDGES, WEIGHTS, 5, 0), (EDGES, WEIGHTS[::-1].copy(), 5, 2))
def bellman_ford(edges, weights, n, source):
    dist = np.full(n, np.inf)
    dist[source] = 0.0
    for _ in range(n - 1):
        changed = False
        for k in range(len(edges)):
            u, v = edges[k]
            if dist[u] + weights[k] < dist[v]:
                dist[v] = dist[u] + weights[k]
                changed = True
        if not changed:
            break
    return dist


@program((ADJACENCY,), (ADJACENCY.T.copy(),))
def dijkstra_dense(adjacency):
    n = len(adjacency)
    dist = np.full(n, np.iinfo(np.int64).max)
    done = np.zeros(n, bool)
    dist[0] = 0
    for _ in range(n):
        u = -1
        for v in range(n):
            if not done[v] and (u == -1 or dist[v] < dist[u]):
                u = v
        if dist[u] == np.iinfo(np.int64).max:
            break
        done[u] = True
        for v in range(n):
            if adjacency[u, v] and dist[u] + adjacency[u, v] < dist[v]:
                dist[v] = dist[u] + adjacency[u, v]
    return dist


@program((WALLS, (0, 0), (6, 6)), (1 - WALLS, (0, 0), (6, 6)))
def maze_steps(walls, start, goal):
    queue = deque([(start, 0)])
    seen = {start}
    while queue:
        (r, c), steps = queue.popleft()
        if (r, c) == goal:
            return steps
        for dr, dc in ((0, 1), (1, 0), (0, -1), (-1, 0)):
            nr, nc = r + dr, c + dc
            inside = 0 <= nr < walls.shape[0] and 0 <= nc < walls.shape[1]
            if inside and not walls[nr, nc] and (nr, nc) not in seen:
                seen.add((nr, nc))
                queue.append(((nr, nc), steps + 1))
    return -1


@program((WALLS,), (1 - WALLS,))
def islands(grid):
    seen = np.zeros_like(grid, dtype=bool)

    def sink(r, c):
        if r < 0 or c < 0 or r >= grid.shape[0] or c >= grid.shape[1]:
            return 0
        if seen[r, c] or grid[r, c] == 0:
            return 0
        seen[r, c] = True
        return 1 + sink(r + 1, c) + sink(r - 1, c) + sink(r, c + 1) + sink(r, c - 1)

    sizes = []
    for r in range(grid.shape[0]):
        for c in range(grid.shape[1]):
            size = sink(r, c)
            if size:
                sizes.append(size)
    return sorted(sizes)


@program((ADJACENCY, 0.85, 1e-10), (ADJACENCY.T.copy(), 0.5, 1e-4))
def page_rank(links, damping, tolerance):
    n = links.shape[0]
    out = links.sum(axis=1)
    rank = np.full(n, 1.0 / n)
    steps = 0
    while True:
        new = np.full(n, (1 - damping) / n)
        for i in range(n):
            if out[i] == 0:
                new += damping * rank[i] / n
            else:
                for j in range(n):
                    if links[i, j]:
                        new[j] += damping * rank[i] / out[i]
        steps += 1
        change = np.abs(new - rank).sum()
        rank = new
        if change < tolerance:
            break
    return rank, steps


@program((ADJACENCY / np.maximum(ADJACENCY.sum(axis=0), 1), 100, 1e-9))
def power_iteration(matrix, limit, tolerance):
    v = np.ones(matrix.shape[0]) / np.sqrt(matrix.shape[0])
    value = 0.0
    for _ in range(limit):
        w = matrix @ v
        norm = np.linalg.norm(w)
        if norm == 0:
            return 0.0, v
        w = w / norm
        new = w @ matrix @ w
        if abs(new - value) < tolerance:
            return new, w
        v, value = w, new
    return value, v


@program((EDGES, 5), (EDGES[:3], 6))
def topological_order(edges, n):
    degree = [0] * n
    after = {k: [] for k in range(n)}
    for u, v in edges:
        degree[v] += 1
        after[u].append(v)
    ready = [k for k in range(n) if degree[k] == 0]
    order = []
    while ready:
        u = ready.pop()
        order.append(int(u))
        for v in after[u]:
            degree[v] -= 1
            if degree[v] == 0:
                ready.append(v)
    return order


@program((EDGES, WEIGHTS, 5))
def kruskal(edges, weights, n):
    parent = np.arange(n)

    def find(k):
        while parent[k] != k:
            parent[k] = parent[parent[k]]
            k = parent[k]
        return k

    total = 0.0
    for k in np.argsort(weights):
        a, b = find(edges[k, 0]), find(edges[k, 1])
        if a != b:
            parent[a] = b
            total += weights[k]
    return total


# ---------------------------------------------------------------------------------- text as numbers


@program((TEXT,), (WORD,))
def letter_counts(text):
    counts = np.zeros(26, np.int64)
    for ch in text:
        if ord("a") <= ch <= ord("z"):
            counts[ch - ord("a")] += 1
    return counts


@program((TEXT, 3), (TEXT, -30))
def caesar(text, shift):
    out = text.copy()
    for i in range(text.size):
        if 97 <= text[i] <= 122:
            out[i] = (text[i] - 97 + shift) % 26 + 97
    return out


@program((TEXT, WORD[:1]), (WORD, WORD[:4]), (WORD, TEXT[:2]))
def find_all(text, pattern):
    m = len(pattern)
    fail = np.zeros(m, int)
    k = 0
    for i in range(1, m):
        while k > 0 and pattern[k] != pattern[i]:
            k = fail[k - 1]
        if pattern[k] == pattern[i]:
            k += 1
        fail[i] = k
    hits = np.zeros(len(text), bool)
    k = 0
    for i, ch in enumerate(text):
        while k > 0 and pattern[k] != ch:
            k = fail[k - 1]
        if pattern[k] == ch:
            k += 1
        if k == m:
            hits[i - m + 1] = True
            k = fail[k - 1]
    return hits


@program((WORD, 101), (TEXT, 1009))
def rolling_hash(text, modulus):
    h = 0
    for ch in text:
        h = (h * 256 + int(ch)) % modulus
    return h


@program((np.array([1, 1, 1, 2, 2, 3, 1, 1]),), (np.array([7]),))
def run_lengths(x):
    values, counts = [], []
    previous, count = x[0], 1
    for v in x[1:]:
        if v == previous:
            count += 1
        else:
            values.append(int(previous))
            counts.append(count)
            previous, count = v, 1
    values.append(int(previous))
    counts.append(count)
    return values, counts


@program((np.array([1, 0, 1, 1, 0, 1]),), (np.array([0, 0, 0]),))
def binary_to_int(bits):
    n = 0
    for b in bits:
        n = (n << 1) | b
    return n


# -------------------------------------------------------------------------------- numerical methods


@program((BANDED, np.arange(6.0), 1e-10, 200), (BANDED, np.ones(6), 1e-2, 5))
def jacobi(a, b, tolerance, limit):
    n = len(b)
    x = np.zeros(n)
    for step in range(limit):
        new = np.zeros(n)
        for i in range(n):
            s = 0.0
            for j in range(n):
                if i != j:
                    s += a[i, j] * x[j]
            new[i] = (b[i] - s) / a[i, i]
        if np.max(np.abs(new - x)) < tolerance:
            return new, step
        x = new
    return x, limit


@program((BANDED, np.arange(6.0)), (BANDED * 2, np.ones(6)))
def conjugate_gradient(a, b):
    x = np.zeros_like(b)
    r = b - a @ x
    p = r.copy()
    rs = r @ r
    for _ in range(len(b)):
        ap = a @ p
        alpha = rs / (p @ ap)
        x += alpha * p
        r -= alpha * ap
        new = r @ r
        if math.sqrt(new) < 1e-10:
            break
        p = r + (new / rs) * p
        rs = new
    return x


@program((np.sin, 0.0, math.pi, 50), (np.exp, 0.0, 1.0, 7))
def simpson(f, a, b, n):
    if n % 2:
        n += 1
    h = (b - a) / n
    total = f(a) + f(b)
    for k in range(1, n):
        total += (4 if k % 2 else 2) * f(a + k * h)
    return total * h / 3


@program((2.0,), (10.0,), (0.5,))
def newton(a):
    def f(x):
        return x**3 - a

    def df(x):
        return 3 * x**2

    x = a
    for _ in range(50):
        step = f(x) / df(x)
        x -= step
        if abs(step) < 1e-12:
            break
    return x


@program((np.array([1.0, -6.0, 11.0, -6.0]), 3.5), (np.array([2.0, 0.0, -1.0]), 0.3))
def synthetic_division(coefficients, x):
    value = slope = 0.0
    for c in coefficients:
        slope = slope * x + value
        value = value * x + c
    return value, slope


@program((np.linspace(0, 1, 6), np.linspace(0, 1, 6) ** 2, 0.33), (np.arange(3.0), FLOATS[:3], 1.5))
def lagrange(xs, ys, x):
    total = 0.0
    for i in range(len(xs)):
        term = ys[i]
        for j in range(len(xs)):
            if j != i:
                term *= (x - xs[j]) / (xs[i] - xs[j])
        total += term
    return total


@program((np.array([1.0, 0.0]), 0.01, 100), (np.array([0.5, 2.0]), 0.1, 20))
def pendulum(state, dt, steps):
    def slope(s):
        return np.array([s[1], -9.81 * np.sin(s[0])])

    path = np.empty((steps + 1, 2))
    path[0] = state
    for k in range(steps):
        k1 = slope(state)
        k2 = slope(state + dt / 2 * k1)
        k3 = slope(state + dt / 2 * k2)
        k4 = slope(state + dt * k3)
        state = state + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        path[k + 1] = state
    return path


@program((BANDED,), (BANDED[:3, :3] * 0.5,))
def determinant(m):
    a = m.astype(np.float64)
    sign = 1
    n = len(a)
    for k in range(n):
        p = k + int(np.argmax(np.abs(a[k:, k])))
        if a[p, k] == 0:
            return 0.0
        if p != k:
            a[[k, p]] = a[[p, k]]
            sign = -sign
        for i in range(k + 1, n):
            a[i, k:] -= a[i, k] / a[k, k] * a[k, k:]
    return sign * np.prod(np.diag(a))


@program((lambda x: x * x - 2, 0.0, 2.0), (lambda x: np.cos(x) - x, 0.0, 1.0))
def secant(f, a, b):
    fa, fb = f(a), f(b)
    for _ in range(60):
        if abs(fb - fa) < 1e-14:
            break
        a, b = b, b - fb * (b - a) / (fb - fa)
        fa, fb = fb, f(b)
    return b


@program((np.zeros((6, 6)), 30), (np.ones((4, 5)), 3))
def heat_plate(u, steps):
    u = u.copy()
    u[0, :] = 100.0
    for _ in range(steps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.25 * (u[i + 1, j] + u[i - 1, j] + u[i, j + 1] + u[i, j - 1])
    return u


# --------------------------------------------------------------------------- learning from scratch


@program((POINTS, LABELS, 0.1, 20), (POINTS[:5], LABELS[:5], 1.0, 3))
def perceptron(x, y, rate, epochs):
    w = np.zeros(x.shape[1])
    b = 0.0
    for _ in range(epochs):
        mistakes = 0
        for xi, yi in zip(x, y):  # noqa: B905 (as people type it)
            guess = 1 if xi @ w + b > 0 else 0
            if guess != yi:
                w += rate * (yi - guess) * xi
                b += rate * (yi - guess)
                mistakes += 1
        if mistakes == 0:
            break
    return w, b


@program(
    (POINTS, LABELS, 0.5, 30),
)
def logistic_regression(x, y, rate, steps):
    w, b = np.zeros(x.shape[1]), 0.0
    losses = []
    for _ in range(steps):
        p = 1 / (1 + np.exp(-(x @ w + b)))
        losses.append(-np.mean(y * np.log(p) + (1 - y) * np.log(1 - p)))
        g = p - y
        w -= rate * x.T @ g / len(y)
        b -= rate * g.mean()
    return w, b, np.array(losses)


@program((POINTS, LABELS, np.array([0.1, 0.2]), 3), (POINTS, LABELS, np.array([5.0, 5.0]), 1))
def nearest_neighbours(x, y, query, k):
    distances = np.sqrt(((x - query) ** 2).sum(axis=1))
    nearest = np.argsort(distances, kind="stable")[:k]
    votes = {}
    for n in nearest:
        label = int(y[n])
        votes[label] = votes.get(label, 0) + 1
    return max(votes, key=votes.get)


@program((POINTS, 3), (POINTS, 2))
def lloyd(points, k):
    centers = points[:k].copy()
    labels = np.zeros(len(points), dtype=np.int64)
    for _ in range(10):
        for i in range(len(points)):
            best = np.inf
            for c in range(k):
                d = 0.0
                for t in range(points.shape[1]):
                    d += (points[i, t] - centers[c, t]) ** 2
                if d < best:
                    best, labels[i] = d, c
        for c in range(k):
            count = 0
            total = np.zeros(points.shape[1])
            for i in range(len(points)):
                if labels[i] == c:
                    total += points[i]
                    count += 1
            if count > 0:
                centers[c] = total / count
    return centers, labels


@program((POINTS, LABELS))
def gaussian_bayes(x, y):
    result = []
    for c in np.unique(y):
        rows = x[y == c]
        result.append((rows.mean(axis=0), rows.var(axis=0), len(rows) / len(y)))
    return result


@program((FLOATS, LABELS[:12]), (FLOATS[:3], np.array([1, 1, 0])))
def best_split(feature, labels):
    order = np.argsort(feature)
    best_score, best_threshold = np.inf, None
    for k in range(1, len(order)):
        left, right = labels[order[:k]], labels[order[k:]]
        score = 0.0
        for side in (left, right):
            p = side.mean()
            score += len(side) * 2 * p * (1 - p)
        if score < best_score:
            best_score = score
            best_threshold = (feature[order[k - 1]] + feature[order[k]]) / 2
    return best_score, best_threshold


@program((FLOATS, 0.9), (FLOATS, 0.0))
def momentum_descent(start, beta):
    x, v = start.copy(), np.zeros_like(start)
    trace = []
    for step in range(25):
        grad = 2 * x + np.cos(x)
        v = beta * v - 0.05 * grad
        x = x + v
        if step % 5 == 0:
            trace.append(float((x**2).sum()))
    return x, trace


class Layer:
    def __init__(self, n_in, n_out, seed):
        rng = np.random.default_rng(seed)
        self.w = rng.normal(size=(n_in, n_out)) / np.sqrt(n_in)
        self.b = np.zeros(n_out)

    def __call__(self, x):
        self.x = x
        return np.tanh(x @ self.w + self.b)


class Network:
    def __init__(self, sizes):
        self.layers = [Layer(a, b, k) for k, (a, b) in enumerate(pairwise(sizes))]

    def predict(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


NETWORK = Network([2, 5, 3])


@program((POINTS,), (POINTS[:4],))
def network_classes(x):
    out = NETWORK.predict(x)
    return out.argmax(axis=1), out


# --------------------------------------------------------------------------------------- simulation


@program((100, 0.3, 0.1, 1e-3, 200), (1000, 0.5, 0.05, 1e-2, 50))
def epidemic(n, beta, gamma, start, days):
    s, i, r = 1 - start, start, 0.0
    peak, day_of_peak = i, 0
    for day in range(days):
        infected = beta * s * i
        healed = gamma * i
        s, i, r = s - infected, i + infected - healed, r + healed
        if i > peak:
            peak, day_of_peak = i, day
    return round(peak * n), day_of_peak


@program((np.array([0, 0, 0, 1, 0, 0, 0, 0]), 30, 6), (np.array([1, 0, 1, 1]), 110, 4))
def cellular_automaton(row, rule, steps):
    history = [row]
    n = len(row)
    for _ in range(steps):
        new = np.zeros_like(row)
        for k in range(n):
            pattern = row[k - 1] * 4 + row[k] * 2 + row[(k + 1) % n]
            new[k] = rule >> pattern & 1
        history.append(new)
        row = new
    return np.array(history)


@program((12345, 20), (1, 3))
def xorshift(seed, n):
    out = np.empty(n, dtype=np.uint32)
    x = seed
    for k in range(n):
        x ^= (x << 13) & 0xFFFFFFFF
        x ^= x >> 17
        x ^= (x << 5) & 0xFFFFFFFF
        out[k] = x
    return out


class Ball(NamedTuple):
    height: float
    speed: float


@program((10.0, 0.8, 0.01), (3.0, 0.5, 0.05))
def bounces(height, keep, dt):
    ball = Ball(height, 0.0)
    count = 0
    while count < 3:
        ball = Ball(ball.height + ball.speed * dt, ball.speed - 9.81 * dt)
        if ball.height <= 0 and ball.speed < 0:
            ball = ball._replace(height=0.0, speed=-ball.speed * keep)
            count += 1
    return ball.speed, count


@program((np.array([3, 1, 2]), np.array([2, 5, 1]), 4))
def queue_times(arrivals, services, servers):
    free = np.zeros(servers)
    waits = np.zeros(len(arrivals))
    clock = 0.0
    for k, (gap, need) in enumerate(zip(arrivals, services, strict=True)):
        clock += gap
        s = free.argmin()
        begin = max(clock, free[s])
        waits[k] = begin - clock
        free[s] = begin + need
    return waits, free


@program((np.array([[0.9, 0.1], [0.5, 0.5]]), 30), (np.array([[0.2, 0.8], [0.6, 0.4]]), 2))
def markov_chain(p, steps):
    state = np.array([1.0, 0.0])
    for _ in range(steps):
        state = state @ p
        if np.allclose(state, state @ p):
            break
    return state


# ------------------------------------------------------------------------------------------- images


@program((IMAGE, 128), (IMAGE, 250))
def threshold(image, level):
    out = np.zeros_like(image)
    for y in range(image.shape[0]):
        for x in range(image.shape[1]):
            out[y, x] = 255 if image[y, x] >= level else 0
    return out


@program((IMAGE,), (IMAGE[:3, :4].copy(),))
def sobel(image):
    kx = np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]])
    ky = kx.T
    h, w = image.shape
    out = np.zeros((h - 2, w - 2))
    for y in range(h - 2):
        for x in range(w - 2):
            patch = image[y : y + 3, x : x + 3]
            gx = (patch * kx).sum()
            gy = (patch * ky).sum()
            out[y, x] = np.hypot(gx, gy)
    return out


@program((IMAGE,), (IMAGE[::2, ::2],))
def median_filter(image):
    out = image.copy()
    for y in range(1, image.shape[0] - 1):
        for x in range(1, image.shape[1] - 1):
            out[y, x] = np.median(image[y - 1 : y + 2, x - 1 : x + 2])
    return out


@program((IMAGE, 2.0), (IMAGE, 0.5))
def resize_nearest(image, factor):
    h, w = int(image.shape[0] * factor), int(image.shape[1] * factor)
    out = np.empty((h, w), image.dtype)
    for y in range(h):
        for x in range(w):
            out[y, x] = image[int(y / factor), int(x / factor)]
    return out


@program((IMAGE,), (IMAGE // 2,))
def equalise(image):
    histogram = np.zeros(256, int)
    for value in image.ravel():
        histogram[value] += 1
    total = np.cumsum(histogram)
    scaled = (total - total.min()) * 255 // max(total.max() - total.min(), 1)
    return scaled.astype(np.uint8)[image]


@program((np.stack([IMAGE] * 3, axis=-1),), (np.stack([IMAGE, IMAGE // 2, IMAGE // 3], axis=-1),))
def grey(rgb):
    h, w, _ = rgb.shape
    out = np.zeros((h, w), np.uint8)
    for y in range(h):
        for x in range(w):
            r, g, b = rgb[y, x]
            out[y, x] = int(0.299 * r + 0.587 * g + 0.114 * b)
    return out


# -------------------------------------------------------------- objects, closures, other constructs


@dataclass
class Running:
    n: int = 0
    mean: float = 0.0
    m2: float = 0.0
    seen: list = field(default_factory=list)

    def add(self, x):
        self.n += 1
        delta = x - self.mean
        self.mean += delta / self.n
        self.m2 += delta * (x - self.mean)


@program((FLOATS,), (FLOATS[:2],))
def welford(x):
    r = Running()
    for v in x:
        r.add(v)
    return r.n, r.mean, r.m2 / (r.n - 1)


@dataclass(frozen=True)
class Complex:
    re: float
    im: float

    def __add__(self, other):
        return Complex(self.re + other.re, self.im + other.im)

    def __mul__(self, other):
        re = self.re * other.re - self.im * other.im
        return Complex(re, self.re * other.im + self.im * other.re)


@program((0.3, 0.5, 20), (1.0, 1.0, 20))
def julia_steps(a, b, limit):
    z, c = Complex(0.0, 0.0), Complex(a, b)
    for k in range(limit):
        z = z * z + c
        if z.re * z.re + z.im * z.im > 4:
            return k
    return limit


@program((FLOATS, 3), (FLOATS, 1))
def smoother(x, width):
    def window(k):
        low, high = max(0, k - width), min(len(x), k + width + 1)
        return x[low:high]

    return np.array([window(k).mean() for k in range(len(x))])


@program((FLOATS,), (FLOATS - 10,))
def counters(x):
    count = 0

    def above(level):
        nonlocal count
        for v in x:
            if v > level:
                count += 1

    above(0.0)
    above(1.0)
    return count


@program((20,), (2,), (0,))
def fibonacci(n):
    if n < 2:
        return n
    return fibonacci(n - 1) + fibonacci(n - 2)


@program((3, 2), (2, 3))
def ackermann(m, n):
    if m == 0:
        return n + 1
    if n == 0:
        return ackermann(m - 1, 1)
    return ackermann(m - 1, ackermann(m, n - 1))


@program((FLOATS,), (FLOATS[:1],))
def merge_sort(x):
    if len(x) <= 1:
        return x.copy()
    middle = len(x) // 2
    left, right = merge_sort(x[:middle]), merge_sort(x[middle:])
    out = np.empty_like(x)
    i = j = 0
    for k in range(len(x)):
        if j >= len(right) or (i < len(left) and left[i] <= right[j]):
            out[k] = left[i]
            i += 1
        else:
            out[k] = right[j]
            j += 1
    return out


@program((FLOATS,), (np.zeros(3),))
def safe_inverse(x):
    out = []
    for v in x.tolist():
        try:
            out.append(1 / v)
        except ZeroDivisionError:
            out.append(math.inf)
    return out


@program((np.arange(5), 2), (np.arange(5), 9), (np.arange(3), -1))
def get_or(x, index):
    try:
        return x[index]
    except IndexError:
        return -1
    finally:
        x = None


@program((FLOATS, 4), (FLOATS, 5))
def batches(x, size):
    def chunks():
        for k in range(0, len(x), size):
            yield x[k : k + size]

    return [chunk.sum() for chunk in chunks()]


@program((FLOATS,), (-np.abs(FLOATS),))
def sum_of_squares(x):
    return sum(v * v for v in x if v > 0)


@program((FLOATS, FLOATS[::-1]), (FLOATS[:3], FLOATS[3:6]))
def generator_dot(a, b):
    total = sum(p * q for p, q in zip(a, b, strict=True))
    largest = max(abs(p - q) for p, q in zip(a, b, strict=True))
    return total, largest, any(p > 1 for p in a), all(q < 5 for q in b)


@program((np.array([5, 3, 5, 1, 3, 5]),), (np.array([1]),))
def value_counts(x):
    counts = {}
    for v in x:
        counts[int(v)] = counts.get(int(v), 0) + 1
    return counts


@program((FLOATS, {"scale": 2.0, "shift": 1.0}), (FLOATS, {"scale": 0.5, "shift": 0.0}))
def configured(x, config):
    scaled = x * config["scale"]
    if config.get("shift"):
        scaled = scaled + config["shift"]
    return {"mean": scaled.mean(), "values": scaled}


@program((FLOATS,), (np.abs(FLOATS),))
def pipeline(x):
    steps = [np.abs, partial(np.add, 1), lambda v: v / v.sum(), np.cumsum]
    return reduce(lambda v, step: step(v), steps, x)


@program((np.array([2, 7, 11, 15]), 9), (np.array([3, 2, 4]), 6), (np.array([1]), 5))
def two_sum_pair(nums, target):
    for i in range(len(nums)):
        for j in range(i + 1, len(nums)):
            if nums[i] + nums[j] == target:
                return (i, j)
    return None


@program((RNG.normal(size=(4, 6)),), (np.arange(6.0).reshape(2, 3)[::-1],))
def sorted_rows(x):
    out = np.empty_like(x)
    for i in range(len(x)):
        out[i] = np.sort(x[i])
    return out


@program((RNG.normal(size=(4, 6)),), (np.arange(6.0).reshape(2, 3),))
def normalised_rows(x):
    out = x.copy()
    for row in out:
        row -= row.mean()
        s = row.std()
        if s > 0:
            row /= s
    return out


@program((np.array([3, 1, 2]),), (np.array([1, 2, 3, 4]),))
def permutations_parity(p):
    seen = [False] * len(p)
    parity = 0
    p = p - p.min()
    for start in range(len(p)):
        k, length = start, 0
        while not seen[k]:
            seen[k] = True
            k = p[k]
            length += 1
        if length > 0:
            parity ^= (length - 1) % 2
    return parity


@program((4,), (6,))
def queens(n):
    columns = np.zeros(n, bool)
    up = np.zeros(2 * n, bool)
    down = np.zeros(2 * n, bool)

    def place(row):
        if row == n:
            return 1
        count = 0
        for c in range(n):
            if not (columns[c] or up[row + c] or down[row - c + n]):
                columns[c] = up[row + c] = down[row - c + n] = True
                count += place(row + 1)
                columns[c] = up[row + c] = down[row - c + n] = False
        return count

    return place(0)


@program((np.array([1.0, np.nan, 3.0, np.nan]),), (np.array([np.nan, 2.0]),))
def fill_gaps(x):
    out = x.copy()
    last = 0.0
    for k in range(len(out)):
        if np.isnan(out[k]):
            out[k] = last
        else:
            last = out[k]
    return out


@program((np.array([2, 3, 1, 1, 4]),), (np.array([3, 2, 1, 0, 4]),))
def jump_game(nums):
    reach = 0
    for i, n in enumerate(nums):
        if i > reach:
            return False
        reach = max(reach, i + n)
    return True


@program((17,), (18,), (2,), (1,))
def is_prime(n):
    if n < 2:
        return False
    for d in range(2, math.isqrt(n) + 1):  # noqa: SIM110
        if n % d == 0:
            return False
    return True


@program((FLOATS, FLOATS[2:5]), (FLOATS[:5], np.array([1.0])))
def correlate(signal, kernel):
    n, m = len(signal), len(kernel)
    out = np.zeros(n - m + 1)
    for i in range(n - m + 1):
        out[i] = sum(signal[i + j] * kernel[j] for j in range(m))
    return out


@program((GRID,), (GRID[:1],))
def spiral(m):
    top, bottom, left, right = 0, m.shape[0] - 1, 0, m.shape[1] - 1
    out = np.empty(m.size, m.dtype)
    k = 0
    while top <= bottom and left <= right:
        for c in range(left, right + 1):
            out[k] = m[top, c]
            k += 1
        top += 1
        for r in range(top, bottom + 1):
            out[k] = m[r, right]
            k += 1
        right -= 1
        if top <= bottom:
            for c in range(right, left - 1, -1):
                out[k] = m[bottom, c]
                k += 1
            bottom -= 1
        if left <= right:
            for r in range(bottom, top - 1, -1):
                out[k] = m[r, left]
                k += 1
            left += 1
    return out
