"""A simulation: what a project would do in the next days, by its own rules, on a clock that only jumps.

In:    settings, what runs were like until now (`samples.py`), and how things stand (`beginning.py`).
Out:   `figures.py`: starts, misses, backlog, budgets, worker slots, broken promises.
Never: the network, a pipeline, or a write.

The schedules, gates, budgets, breakers, retries, healths and cadences are those that work is done by; what
work would bring is drawn from the runs there were. Jobs are counted and not performed: those that are alike
and start together are one step.

Testing a pipeline is another matter: `penstock.testing.Simulation` runs the engine itself.
"""

from penstock.engine.simulation.initial_state import InitialState, SourceState
from penstock.engine.simulation.loop import simulate

__all__ = ["InitialState", "SourceState", "simulate"]
