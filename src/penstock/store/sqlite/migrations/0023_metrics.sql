-- expands

-- What folding the journal remembers from batch to batch, as JSON: sources that have not recovered, and when each was throttled.
ALTER TABLE rollup_position ADD COLUMN memory TEXT NOT NULL DEFAULT '{}';

-- Attempts that were taken back from a worker and whose job has not started again: since when nobody works on them.
CREATE TABLE released_attempt (
  job_id INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  at REAL NOT NULL,
  PRIMARY KEY (job_id, attempt)
) STRICT, WITHOUT ROWID;
