"""The supervisor: owns worker processes, keeps their leases, reaps them when they die.

In:    a project, and how many workers it has.
Out:   workers that live, and jobs of dead ones back in their queues.
Never: performing a step.
"""
