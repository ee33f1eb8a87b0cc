"""The leader: what is done once for all hosts, by the one that leads. One chore in each file.

In:    schedules, signals, files that landed, retention.
Out:   runs that start, hooks that are told, history that is dropped.
Never: performing a step.
"""
