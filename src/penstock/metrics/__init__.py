"""Metrics: what is counted, how the journal is folded into it, and how it is exposed.

In:    lines of the journal, what attempts have measured, and the counters of the store.
Out:   sums by source, measure, hour and label; metric families; the text that Prometheus scrapes.
Never: SQL, the clock, the network.
"""
