"""A city on loopback: companies with sites, lists, an API, a search, a map, a geocoder and a DNS.

In:    a seed and a number of companies.
Out:   servers that behave the same way every time, faults included, and the dataset that should come of them.
Never: the outside network; a name that anybody else resolves (all are below `localhost`).
"""

from penstock.builder.city.evaluation import Evaluation, evaluate
from penstock.builder.city.world import World

__all__ = ["Evaluation", "World", "evaluate"]
