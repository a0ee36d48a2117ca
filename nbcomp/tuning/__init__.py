"""The tuner: searches the schedules a kernel may have for the fastest, in seconds the user gives.

tasks      the kernels of a program, with data and the answers they must give
bench      one kernel in this process: compiled, checked, timed
worker     the same in processes of their own, which may crash and hang
space      what there is to choose: the decisions of the schedule's rules
analytic   what a schedule will take, estimated from its loops
learned    the same, learned from what was measured
search     which schedules of a kernel are tried next
tuner      the whole: budget, record, the best against the default
findings   which steps of the best mattered
"""
