"""Honest measuring: equality first, then timings that alternate between what is compared.

A file per thing: `differences` of answers, `arguments` and their copies, `timing`; the `comparison`
with NumPy and its `scaling` over batch sizes; one program in several `variants`, pass by pass
(`passes`) and with each optimisation left out (`ablation`); `kernels` against the machine's
`limits`, and the `memory_plan`.  `figures` and `roofline` are the results, as plain data.
"""
