-- expands
-- locks: event, until its new indexes are built

-- The journal has no index by job, which every move of every job would pay for. What happened to a run or a source itself, and
-- what people did, is a small part of it, and would otherwise be looked for among millions of lines about jobs.
CREATE INDEX event_of_run ON penstock.event (run_id, id) WHERE job_id IS NULL AND run_id IS NOT NULL;
CREATE INDEX event_of_source ON penstock.event (source_id, id) WHERE job_id IS NULL AND run_id IS NULL AND source_id IS NOT NULL;
CREATE INDEX event_of_people ON penstock.event (id) WHERE origin IN ('cli', 'python', 'api', 'dashboard');
