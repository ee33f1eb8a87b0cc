"""The worker: claims jobs, performs their steps, settles them.

In:    a project, a name and a lease that a supervisor keeps.
Out:   settled attempts with their effects, snapshots of what was fetched, lines that steps printed.
Never: renewing its own lease, starting runs.
"""
