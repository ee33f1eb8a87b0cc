-- expands
-- locks: run and tally, for a moment; job_failure, until its new index is built

-- An entry that left quarantine without being released: when, why, and by which later job of the same page.
ALTER TABLE penstock.job_failure ADD COLUMN closed_at double precision;
ALTER TABLE penstock.job_failure ADD COLUMN closed_why text NOT NULL DEFAULT '';
ALTER TABLE penstock.job_failure ADD COLUMN closed_by_job_id bigint;

CREATE INDEX job_failure_closed ON penstock.job_failure (closed_at) WHERE closed_at IS NOT NULL;

-- Pages that are not there any more, and that the settings say to skip.
ALTER TABLE penstock.run ADD COLUMN pages_missing bigint NOT NULL DEFAULT 0;
ALTER TABLE penstock.tally ADD COLUMN pages_missing bigint NOT NULL DEFAULT 0;
