-- expands

-- The code and configuration that workers have loaded, by its hash: those of one deployment share a row.
CREATE TABLE loaded (
  hash TEXT PRIMARY KEY,
  code TEXT NOT NULL
) STRICT, WITHOUT ROWID;

ALTER TABLE worker ADD COLUMN loaded TEXT;
ALTER TABLE worker ADD COLUMN parent_pid INTEGER;

-- Signals, notes and rejects of a job that does not commit all at once: what a later attempt sends again is known by these.
CREATE TABLE sent (
  job_id INTEGER NOT NULL,
  hash TEXT NOT NULL,
  PRIMARY KEY (job_id, hash)
) STRICT, WITHOUT ROWID;
