-- expands

-- Attempts that were taken from a worker which had died unseen: since when nobody worked on them.
CREATE TABLE interruption (
  job_id INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  since REAL NOT NULL,
  PRIMARY KEY (job_id, attempt)
) STRICT, WITHOUT ROWID;
