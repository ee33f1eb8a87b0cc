"""Entity resolution: which rows are the same company.

In:    companies as `normalize.standardize` makes them, of all sources, in any order.
Out:   clusters, and one company for each; the same for the same rows, whatever their order.
Never: comparing everybody with everybody, or joining two companies whose register numbers differ.
"""

from penstock.builder.matching.clusters import Cluster, match
from penstock.builder.matching.merge import merge, rejoin, resolve
from penstock.builder.matching.scores import THRESHOLD, score

__all__ = ["THRESHOLD", "Cluster", "match", "merge", "rejoin", "resolve", "score"]
