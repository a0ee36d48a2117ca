"""Programs of numerics and algorithms textbooks, as people type them: a function and its calls."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

Calls = tuple[tuple[Any, ...], ...]
TEXTBOOK: dict[str, tuple[Callable[..., Any], Calls]] = {}
RNG = np.random.default_rng(7)
A5 = RNG.normal(size=(5, 5)) + 5 * np.eye(5)
A7 = RNG.normal(size=(7, 7)) + 7 * np.eye(7)
S5 = A5 @ A5.T
S7 = A7 @ A7.T
INTS = np.array([5, 3, 9, 1, 7, 7, 2, 8, 0, 4])


def program(*calls: tuple[Any, ...]) -> Callable[[Any], Any]:
    """Declare a program with the arguments of its calls."""

    def register(function: Any) -> Any:
        TEXTBOOK[function.__name__] = (function, calls)
        return function

    return register


@program((A5, A5[0]), (A7, A7[1]))
def gauss(a, b):
    a, b = a.copy(), b.copy()
    n = len(b)
    for k in range(n - 1):
        p = np.argmax(np.abs(a[k:, k])) + k
        if p != k:
            a[[k, p]] = a[[p, k]]
            b[k], b[p] = b[p], b[k]
        for i in range(k + 1, n):
            f = a[i, k] / a[k, k]
            a[i, k:] -= f * a[k, k:]
            b[i] -= f * b[k]
    x = np.zeros(n)
    for i in range(n - 1, -1, -1):
        x[i] = (b[i] - a[i, i + 1 :] @ x[i + 1 :]) / a[i, i]
    return x


@program((A5,), (A7,))
def lu(a):
    u = a.copy()
    n = u.shape[0]
    low = np.eye(n)
    for k in range(n - 1):
        for i in range(k + 1, n):
            low[i, k] = u[i, k] / u[k, k]
            u[i, k:] = u[i, k:] - low[i, k] * u[k, k:]
    return low, u


@program((A5,), (A7,))
def lu_in_place(a):
    a = a.copy()
    n = len(a)
    for k in range(n):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return a


@program((S5,), (S7,))
def cholesky(a):
    n = a.shape[0]
    low = np.zeros_like(a)
    for i in range(n):
        for j in range(i + 1):
            s = np.dot(low[i, :j], low[j, :j])
            if i == j:
                low[i, j] = math.sqrt(a[i, i] - s)
            else:
                low[i, j] = (a[i, j] - s) / low[j, j]
    return low


@program((np.triu(A5), A5[0]), (np.triu(A7), A7[2]))
def back_substitution(u, b):
    n = len(b)
    x = np.zeros(n)
    for i in reversed(range(n)):
        s = b[i]
        for j in range(i + 1, n):
            s -= u[i, j] * x[j]
        x[i] = s / u[i, i]
    return x


@program((30,), (100,), (7,))
def sieve(n):
    s = np.ones(n + 1, dtype=bool)
    s[0] = s[1] = False
    i = 2
    while i * i <= n:
        if s[i]:
            s[i * i :: i] = False
        i += 1
    return s


@program((30,), (100,))
def sieve_for(n):
    s = np.ones(n + 1, dtype=np.bool_)
    s[:2] = False
    for i in range(2, int(n**0.5) + 1):
        if s[i]:
            s[i * i : n + 1 : i] = False
    return np.flatnonzero(s)


@program((np.array([1, 2, 5]), 11), (np.array([2, 3]), 7))
def coin_change(coins, amount):
    dp = np.full(amount + 1, amount + 1)
    dp[0] = 0
    for c in coins:
        for a in range(c, amount + 1):
            dp[a] = min(dp[a], dp[a - c] + 1)
    return dp[amount] if dp[amount] <= amount else -1


@program((np.arange(12).reshape(3, 4),), (np.arange(6.0).reshape(2, 3),))
def rotate_matrix(m):
    n, k = m.shape
    out = np.zeros((k, n), m.dtype)
    for i in range(n):
        for j in range(k):
            out[j, n - 1 - i] = m[i, j]
    return out


@program((np.arange(16).reshape(4, 4),), (np.arange(25.0).reshape(5, 5),))
def rotate_rows(m):
    out = np.empty_like(m)
    n = m.shape[0]
    for i in range(n):
        out[:, n - 1 - i] = m[i, :]
    return out


@program((INTS,), (INTS[:4] * 1.5,))
def prefix_sums(x):
    out = np.zeros(len(x) + 1, x.dtype)
    for i in range(len(x)):
        out[i + 1] = out[i] + x[i]
    return out


@program((INTS, 3), (INTS * 0.5, 4))
def moving_average(x, w):
    n = len(x) - w + 1
    out = np.zeros(n)
    for i in range(n):
        out[i] = x[i : i + w].mean()
    return out


@program((INTS,), (INTS[::-1] / 2,))
def bubble_sort(x):
    x = x.copy()
    n = len(x)
    for i in range(n):
        swapped = False
        for j in range(n - i - 1):
            if x[j] > x[j + 1]:
                x[j], x[j + 1] = x[j + 1], x[j]
                swapped = True
        if not swapped:
            break
    return x


@program((INTS,), (INTS[::-1] / 2,))
def insertion_sort(x):
    x = x.copy()
    for i in range(1, len(x)):
        key = x[i]
        j = i - 1
        while j >= 0 and x[j] > key:
            x[j + 1] = x[j]
            j -= 1
        x[j + 1] = key
    return x


@program((INTS,), (INTS * -1.5,))
def insertion_by_slices(x):
    x = x.copy()
    for i in range(1, len(x)):
        key = x[i]
        j = i
        while j > 0 and x[j - 1] > key:
            j -= 1
        x[j + 1 : i + 1] = x[j:i]
        x[j] = key
    return x


@program((INTS,), (INTS * -1.5,))
def selection_sort(x):
    x = x.copy()
    for i in range(len(x) - 1):
        k = i + np.argmin(x[i:])
        x[i], x[k] = x[k], x[i]
    return x


@program((INTS,), (INTS[::-1] / 2,))
def quicksort(x):
    x = x.copy()
    stack = np.zeros((len(x) + 1, 2), dtype=np.int64)
    top = 0
    stack[0] = 0, len(x) - 1
    while top >= 0:
        lo, hi = stack[top, 0], stack[top, 1]
        top -= 1
        if lo >= hi:
            continue
        pivot, i = x[hi], lo - 1
        for j in range(lo, hi):
            if x[j] <= pivot:
                i += 1
                x[i], x[j] = x[j], x[i]
        x[i + 1], x[hi] = x[hi], x[i + 1]
        top += 1
        stack[top, 0], stack[top, 1] = lo, i
        top += 1
        stack[top, 0], stack[top, 1] = i + 2, hi
    return x


@program((8, np.array([[0, 1], [2, 3], [1, 3], [5, 6]])), (4, np.array([[0, 3]])))
def union_find(n, edges):
    parent = np.arange(n)
    count = n
    for a, b in edges:
        while parent[a] != a:
            parent[a] = parent[parent[a]]
            a = parent[a]
        while parent[b] != b:
            b = parent[b]
        if a != b:
            parent[a] = b
            count -= 1
    return parent, count


@program((RNG.integers(0, 2, (6, 7)), 3), (RNG.integers(0, 2, (5, 5)), 2))
def game_of_life(grid, steps):
    n, m = grid.shape
    for _ in range(steps):
        new = grid.copy()
        for i in range(n):
            for j in range(m):
                alive = 0
                for di in (-1, 0, 1):
                    for dj in (-1, 0, 1):
                        if di or dj:
                            alive += grid[(i + di) % n, (j + dj) % m]
                new[i, j] = 1 if alive == 3 or (alive == 2 and grid[i, j]) else 0
        grid = new
    return grid


@program((np.frombuffer(b"kitten", np.uint8), np.frombuffer(b"sitting", np.uint8)))
def levenshtein(a, b):
    n, m = len(a), len(b)
    d = np.zeros((n + 1, m + 1), dtype=np.int32)
    d[:, 0] = np.arange(n + 1)
    d[0, :] = np.arange(m + 1)
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            cost = 0 if a[i - 1] == b[j - 1] else 1
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + cost)
    return d[n, m]


@program((np.array([1.0, 2, 3, 4, 0, 0, 0, 0]), np.zeros(8)))
def fft(re, im):
    re, im = re.copy(), im.copy()
    n = len(re)
    j = 0
    for i in range(1, n):
        bit = n >> 1
        while j & bit:
            j ^= bit
            bit >>= 1
        j |= bit
        if i < j:
            re[i], re[j] = re[j], re[i]
            im[i], im[j] = im[j], im[i]
    length = 2
    while length <= n:
        angle = -2 * math.pi / length
        for start in range(0, n, length):
            for k in range(length // 2):
                wr, wi = math.cos(angle * k), math.sin(angle * k)
                p, q = start + k, start + k + length // 2
                tr = re[q] * wr - im[q] * wi
                ti = re[q] * wi + im[q] * wr
                re[q], im[q] = re[p] - tr, im[p] - ti
                re[p], im[p] = re[p] + tr, im[p] + ti
        length *= 2
    return re, im


@program((RNG.normal(size=(20, 2)), RNG.normal(size=(3, 2)), 4))
def kmeans(points, centres, steps):
    centres = centres.copy()
    labels = np.zeros(len(points), dtype=np.int64)
    for _ in range(steps):
        for i in range(len(points)):
            best = np.inf
            for k in range(len(centres)):
                d = ((points[i] - centres[k]) ** 2).sum()
                if d < best:
                    best, labels[i] = d, k
        for k in range(len(centres)):
            total, count = np.zeros(2), 0
            for i in range(len(points)):
                if labels[i] == k:
                    total += points[i]
                    count += 1
            if count:
                centres[k] = total / count
    return centres, labels


@program((np.array([[0, 1, 1], [1, 0, 0], [0, 1, 0]]), 0.85, 1e-8))
def pagerank(links, d, tol):
    n = links.shape[0]
    rank = np.ones(n) / n
    out = links.sum(axis=1)
    while True:
        new = np.full(n, (1 - d) / n)
        for i in range(n):
            for j in range(n):
                if links[j, i]:
                    new[i] += d * rank[j] / out[j]
        if np.abs(new - rank).sum() < tol:
            return new
        rank = new


@program((2.0,), (10.0,))
def newton_sqrt(a):
    x = a
    for _ in range(50):
        new = 0.5 * (x + a / x)
        if abs(new - x) < 1e-12:
            break
        x = new
    return x


@program((0.0, 2.0), (1.0, 3.0))
def bisection(lo, hi):
    def f(x):
        return x**3 - 2 * x - 5 if x > 1 else x - 1.5

    steps = 0
    while hi - lo > 1e-9:
        mid = (lo + hi) / 2
        if f(mid) * f(lo) <= 0:
            hi = mid
        else:
            lo = mid
        steps += 1
    return lo, steps


@program((1.0, 0.0, 0.1, 20))
def rk4(x, v, h, n):
    def force(p, q):
        return q, -p

    xs = np.zeros(n)
    for i in range(n):
        a1, b1 = force(x, v)
        a2, b2 = force(x + h / 2 * a1, v + h / 2 * b1)
        a3, b3 = force(x + h / 2 * a2, v + h / 2 * b2)
        a4, b4 = force(x + h * a3, v + h * b3)
        x += h / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
        v += h / 6 * (b1 + 2 * b2 + 2 * b3 + b4)
        xs[i] = x
    return xs


@program((27,), (97,), (1,))
def collatz(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


@program((42, 5), (7, 9))
def lcg(seed, n):
    out = np.empty(n, dtype=np.float64)
    state = seed
    for i in range(n):
        state = (1664525 * state + 1013904223) % 2**32
        out[i] = state / 2**32
    return out


@program((INTS,), (INTS[::-1] / 2,))
def heapsort(x):
    x = x.copy()

    def sift(root, end):
        while 2 * root + 1 < end:
            child = 2 * root + 1
            if child + 1 < end and x[child] < x[child + 1]:
                child += 1
            if x[root] >= x[child]:
                return
            x[root], x[child] = x[child], x[root]
            root = child

    n = len(x)
    for i in range(n // 2 - 1, -1, -1):
        sift(i, n)
    for end in range(n - 1, 0, -1):
        x[0], x[end] = x[end], x[0]
        sift(0, end)
    return x


@program((np.sort(INTS), 7), (np.sort(INTS), 6), (np.arange(3.0), 2.0))
def binary_search(x, key):
    lo, hi = 0, len(x) - 1
    while lo <= hi:
        mid = (lo + hi) // 2
        if x[mid] == key:
            return mid
        elif x[mid] < key:
            lo = mid + 1
        else:
            hi = mid - 1
    return -1


@program((INTS,), (INTS[:3],))
def counting_sort(x):
    counts = np.zeros(x.max() + 1, dtype=np.int64)
    for v in x:
        counts[v] += 1
    out = np.empty_like(x)
    at = 0
    for v in range(len(counts)):
        out[at : at + counts[v]] = v
        at += counts[v]
    return out


@program((np.array([1, 3, 4, 5]), np.array([1, 4, 5, 7]), 7))
def knapsack(weights, values, capacity):
    n = len(weights)
    dp = np.zeros((n + 1, capacity + 1), dtype=int)
    for i in range(1, n + 1):
        w, v = weights[i - 1], values[i - 1]
        dp[i, :w] = dp[i - 1, :w]
        for c in range(w, capacity + 1):
            dp[i, c] = max(dp[i - 1, c], dp[i - 1, c - w] + v)
    return dp[n, capacity]


@program((np.array([10, 30, 5, 60]),), (np.array([40, 20, 30, 10, 30]),))
def matrix_chain(dims):
    n = len(dims) - 1
    m = np.zeros((n, n), dtype=np.int64)
    for length in range(2, n + 1):
        for i in range(n - length + 1):
            j = i + length - 1
            m[i, j] = np.iinfo(np.int64).max
            for k in range(i, j):
                cost = m[i, k] + m[k + 1, j] + dims[i] * dims[k + 1] * dims[j + 1]
                if cost < m[i, j]:
                    m[i, j] = cost
    return m[0, n - 1]


@program((A5, 3), (A7, 4))
def gram_schmidt(a, k):
    q = np.zeros((a.shape[0], k))
    for j in range(k):
        v = a[:, j].copy()
        for i in range(j):
            v -= np.dot(q[:, i], a[:, j]) * q[:, i]
        q[:, j] = v / np.linalg.norm(v)
    return q


@program((S5, np.ones(5)), (S7, np.arange(7.0)))
def gauss_seidel(a, b):
    x = np.zeros(len(b))
    for _ in range(30):
        for i in range(len(b)):
            s = a[i, :i] @ x[:i] + a[i, i + 1 :] @ x[i + 1 :]
            x[i] = (b[i] - s) / a[i, i]
    return x


@program((np.linspace(0, 3, 8), np.sin(np.linspace(0, 3, 8)), 1.234))
def newton_interpolation(x, y, at):
    c = y.copy()
    n = len(x)
    for j in range(1, n):
        c[j:] = (c[j:] - c[j - 1 : -1]) / (x[j:] - x[: n - j])
    value = c[-1]
    for k in range(n - 2, -1, -1):
        value = value * (at - x[k]) + c[k]
    return value


@program((0.0, 1.0, 6), (1.0, 2.0, 5))
def romberg(a, b, n):
    r = np.zeros((n, n))
    h = b - a
    r[0, 0] = h / 2 * (math.exp(a) + math.exp(b))
    for i in range(1, n):
        h /= 2
        total = 0.0
        for k in range(1, 2**i, 2):
            total += math.exp(a + k * h)
        r[i, 0] = r[i - 1, 0] / 2 + h * total
        for j in range(1, i + 1):
            r[i, j] = r[i, j - 1] + (r[i, j - 1] - r[i - 1, j - 1]) / (4**j - 1)
    return r[n - 1, n - 1]


@program((np.array([3.0, -1, 2, 7, -9]), 3), (np.array([1, 2, 3, 4]), 1))
def rotate_left(x, k):
    out = np.empty_like(x)
    n = len(x)
    out[: n - k] = x[k:]
    out[n - k :] = x[:k]
    return out


@program((np.array([-2, 1, -3, 4, -1, 2, 1, -5, 4]),), (np.array([-3.0, -1.5]),))
def kadane(x):
    best = current = x[0]
    for v in x[1:]:
        current = max(v, current + v)
        best = max(best, current)
    return best


@program((np.array([2, 7, 11, 15]), 9), (np.array([2, 7, 11, 15]), 100))
def two_sum(x, target):
    n = len(x)
    for i in range(n):
        for j in range(i + 1, n):
            if x[i] + x[j] == target:
                return i, j
    return None


@program((10,), (5,))
def pascal(n):
    t = np.zeros((n, n), dtype=np.int64)
    for i in range(n):
        t[i, 0] = 1
        t[i, 1 : i + 1] = t[i - 1, :i] + t[i - 1, 1 : i + 1]
    return t


@program((np.array([[1, 1, 0], [0, 1, 1], [0, 0, 1]]), 0, 0), (np.zeros((3, 3), int), 1, 1))
def flood_fill(image, r, c):
    image = image.copy()
    old = image[r, c]
    stack = np.zeros((image.size * 5, 2), dtype=np.int64)
    stack[0, 0], stack[0, 1], top = r, c, 1
    while top > 0:
        top -= 1
        y, x = stack[top]
        if y < 0 or x < 0 or y >= image.shape[0] or x >= image.shape[1] or image[y, x] != old:
            continue
        image[y, x] = old + 5
        for dy, dx in [(0, 1), (1, 0), (0, -1), (-1, 0)]:
            stack[top, 0], stack[top, 1] = y + dy, x + dx
            top += 1
    return image


@program((np.arange(9.0).reshape(3, 3),), (np.ones((2, 4)),))
def integral_image(x):
    s = np.zeros((x.shape[0] + 1, x.shape[1] + 1))
    for i in range(x.shape[0]):
        row = 0.0
        for j in range(x.shape[1]):
            row += x[i, j]
            s[i + 1, j + 1] = s[i, j + 1] + row
    return s[1:, 1:]


@program((np.array([3, 1, 4, 1, 5, 9, 2, 6]), 3), (np.array([1.5, 0.5]), 2))
def window_max(x, w):
    return np.array([x[i : i + w].max() for i in range(len(x) - w + 1)])


@program((RNG.normal(size=20), RNG.normal(size=3)))
def convolve(x, kernel):
    n, k = len(x), len(kernel)
    out = np.zeros(n - k + 1)
    for i in range(n - k + 1):
        out[i] = sum(x[i + j] * kernel[k - 1 - j] for j in range(k))
    return out


@program((RNG.normal(size=(3, 4)), RNG.normal(size=(4, 2))))
def matmul(a, b):
    out = np.zeros((a.shape[0], b.shape[1]))
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            for k in range(a.shape[1]):
                out[i, j] += a[i, k] * b[k, j]
    return out


@program((np.array([0, 1, 2, 3]), 0.5), (np.array([2.0, 1.0]), 3))
def horner(c, x):
    p = 0
    for a in c[::-1]:
        p = p * x + a
    return p
