-- expands
-- locks: event, until its new indexes are built

-- Of what grows with the work that was ever done, nearly all are starts and successes of jobs: they stand in no index, which every
-- move of every job would pay for. Everything else is found by its kind, and by its job.
CREATE INDEX event_of_kind ON penstock.event (kind, id) WHERE kind NOT IN ('job.started', 'job.succeeded');
CREATE INDEX event_of_job ON penstock.event (run_id, job_id, id) WHERE job_id IS NOT NULL AND kind NOT IN ('job.started', 'job.succeeded');
