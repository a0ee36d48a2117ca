"""The side-by-side benchmark: the same workloads through nbcomp, NumPy and the other compilers.

`python -m benchmarks.run` is the entry; see `run` for its options and `timing` for how time
is taken.
"""
