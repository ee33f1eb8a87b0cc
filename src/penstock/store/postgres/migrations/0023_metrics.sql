-- expands
-- locks: rollup_position, for a moment

-- What folding the journal remembers from batch to batch, as JSON: sources that have not recovered, and when each was throttled.
ALTER TABLE penstock.rollup_position ADD COLUMN memory text NOT NULL DEFAULT '{}';

-- Attempts that were taken back from a worker and whose job has not started again: since when nobody works on them.
CREATE TABLE penstock.released_attempt (
  job_id bigint NOT NULL,
  attempt bigint NOT NULL,
  at double precision NOT NULL,
  PRIMARY KEY (job_id, attempt)
);
