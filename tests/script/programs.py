"""Functions with explicit loops, as people write them."""

from __future__ import annotations

import numpy as np


def mandel(out, w, h, n):
    for j in range(h):
        for i in range(w):
            cr = -2.0 + 3.0 * i / w
            ci = -1.0 + 2.0 * j / h
            zr = 0.0
            zi = 0.0
            k = 0
            while k < n and zr * zr + zi * zi < 4.0:
                zr, zi = zr * zr - zi * zi + cr, 2.0 * zr * zi + ci
                k += 1
            out[j, i] = k


def thomas(a, b, c, d):
    n = len(d)
    cp = np.empty(n)
    dp = np.empty(n)
    x = np.empty(n)
    cp[0] = c[0] / b[0]
    dp[0] = d[0] / b[0]
    for i in range(1, n):
        m = b[i] - a[i] * cp[i - 1]
        cp[i] = c[i] / m
        dp[i] = (d[i] - a[i] * dp[i - 1]) / m
    x[n - 1] = dp[n - 1]
    for i in range(n - 2, -1, -1):
        x[i] = dp[i] - cp[i] * x[i + 1]
    return x


def floyd(d):
    n = d.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                s = d[i, k] + d[k, j]
                if s < d[i, j]:
                    d[i, j] = s
    return d


def smith_waterman(a, b, match, mis, gap):
    n, m = len(a), len(b)
    H = np.zeros((n + 1, m + 1), np.int64)
    best = 0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            s = match if a[i - 1] == b[j - 1] else mis
            v = max(0, H[i - 1, j - 1] + s, H[i - 1, j] + gap, H[i, j - 1] + gap)
            H[i, j] = v
            if v > best:
                best = v
    return best


def hist(x, bins):
    h = np.zeros(bins, np.int64)
    for i in range(len(x)):
        h[x[i]] += 1
    return h


def prefix(x):
    out = np.empty_like(x)
    s = 0.0
    for i in range(len(x)):
        s += x[i]
        out[i] = s
    return out


def csr(data, indices, indptr, x):
    n = len(indptr) - 1
    y = np.zeros(n)
    for i in range(n):
        s = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            s += data[k] * x[indices[k]]
        y[i] = s
    return y


def crc(data, poly):
    crc = 0xFFFFFFFF
    for b in data:
        crc ^= b
        for _ in range(8):
            if crc & 1:
                crc = (crc >> 1) ^ poly
            else:
                crc >>= 1
    return crc ^ 0xFFFFFFFF


def crc2(data, poly):
    crc = 0xFFFFFFFF
    for i in range(len(data)):
        crc ^= int(data[i])
        for _ in range(8):
            if crc & 1:
                crc = (crc >> 1) ^ poly
            else:
                crc >>= 1
    return crc ^ 0xFFFFFFFF


def nbody(pos, vel, mass, dt, steps):
    n = len(mass)
    for _ in range(steps):
        for i in range(n):
            for j in range(i + 1, n):
                dx = pos[i, 0] - pos[j, 0]
                dy = pos[i, 1] - pos[j, 1]
                dz = pos[i, 2] - pos[j, 2]
                d2 = dx * dx + dy * dy + dz * dz
                mag = dt / (d2 * np.sqrt(d2))
                vel[i, 0] -= dx * mass[j] * mag
                vel[i, 1] -= dy * mass[j] * mag
                vel[i, 2] -= dz * mass[j] * mag
                vel[j, 0] += dx * mass[i] * mag
                vel[j, 1] += dy * mass[i] * mag
                vel[j, 2] += dz * mass[i] * mag
        for i in range(n):
            for k in range(3):
                pos[i, k] += dt * vel[i, k]


def collatz(n):
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n //= 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps


def find(a, v):
    for i in range(len(a)):
        if a[i] == v:
            return i
    return -1


def gcd(a, b):
    while b:
        a, b = b, a % b
    return a


def sieve(n):
    p = np.ones(n, bool)
    c = 0
    for i in range(2, n):
        if p[i]:
            c += 1
            for j in range(i * i, n, i):
                p[j] = False
    return c


def oob(a):
    s = 0.0
    for i in range(len(a) + 1):
        s += a[i]
    return s


def oob2(a):
    for i in range(len(a) + 1):
        a[i] = 2.0


def neg(a):
    s = 0.0
    for i in range(len(a)):
        s += a[-i - 1] * a[i - 3]
    return s


def helper(x, y=2):
    if x > y:
        return x * y
    return x - y


def uses(a):
    t = 0.0
    for i in range(len(a)):
        t += helper(a[i])
    for x in a:
        t += helper(x, y=1)
    for i, x in enumerate(a):
        t += i * x
    for x, y in zip(a, a[1:]):  # noqa: B905, RUF007
        t += x * y
    return t


def bubble(a):
    n = len(a)
    for i in range(n):
        sw = False
        for j in range(n - 1 - i):
            if a[j] > a[j + 1]:
                a[j], a[j + 1] = a[j + 1], a[j]
                sw = True
        if not sw:
            break
    return a


def forelse(a):
    for i in range(len(a)):
        if a[i] > 100:
            break
    else:
        return -1
    return i


def unbound(a):
    for i in range(len(a)):
        if a[i] > 1e9:
            z = i
    return z


def ovf(n):
    x = 1
    for _ in range(n):
        x *= 3
    return x


def asrt(a):
    for i in range(len(a)):
        assert a[i] < 5, "too big"
    return a


def nested(a):
    def f(x):
        return x * k

    k = 3
    t = 0
    for i in range(len(a)):
        k = i
        t += f(i) if i % 2 else -f(i)
    return t


def bis(a, x):
    lo, hi = 0, len(a)
    while lo < hi:
        mid = (lo + hi) // 2
        if a[mid] < x:
            lo = mid + 1
        else:
            hi = mid
    return lo


def zdiv(a, b):
    t = 0.0
    for i in range(3):
        t += a / (b - i)
    return t


def cont(a):
    s = 0.0
    n = 0
    for x in a:
        if x < 0:
            continue
        if x > 2:
            break
        s += x
        n += 1
    return s / n, n


def f32s(a):
    s = 0.0
    for x in a:
        s += x * x
    return s


def minmax(a):
    lo = hi = a[0]
    for x in a:
        if x < lo:
            lo = x
        elif x > hi:
            hi = x
    return lo, hi


def triple(a):
    n = 0
    for i in range(10):
        for j in range(i):
            for k in range(j):
                if (i + j + k) % 3 == 0:
                    continue
                n += i * j - k
    return n
