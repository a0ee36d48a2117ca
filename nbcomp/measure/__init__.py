"""Honest measuring: equality first, then timings that alternate between what is compared.

A file per thing: `differences` of answers, `arguments` and their copies, `timing`, the `comparison`
with NumPy, its `scaling` over batch sizes.
"""
