-- expands

-- An entry that left quarantine without being released: when, why, and by which later job of the same page.
ALTER TABLE job_failure ADD COLUMN closed_at REAL;
ALTER TABLE job_failure ADD COLUMN closed_why TEXT NOT NULL DEFAULT '';
ALTER TABLE job_failure ADD COLUMN closed_by_job_id INTEGER;

CREATE INDEX job_failure_closed ON job_failure (closed_at) WHERE closed_at IS NOT NULL;

-- Pages that are not there any more, and that the settings say to skip.
ALTER TABLE run ADD COLUMN pages_missing INTEGER NOT NULL DEFAULT 0;
