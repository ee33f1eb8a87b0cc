"""A dry run of one page: its steps are performed as a worker would, and nothing is written.

In:    a source, and the address of a page or the job that failed.
Out:   what came of each job, and what would be saved beside the records that are there.
Never: a row, a snapshot, a place in a rate or a budget. Pages that would be enqueued are named only.
"""

from penstock.engine.dry_run.runner import probe_source, try_page
from penstock.engine.dry_run.stored import StoredJob, perform_stored
from penstock.engine.dry_run.tried import Tried

__all__ = ["StoredJob", "Tried", "perform_stored", "probe_source", "try_page"]
