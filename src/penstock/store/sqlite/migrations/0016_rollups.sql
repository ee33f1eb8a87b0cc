-- expands

-- Sums by source, measure and label: of each hour and day (`step` is its length), and with step 0 of all time. A source_id
-- of 0 is all sources together. Made of the journal and of `measured`, by whoever leads.
CREATE TABLE rollup (
  source_id INTEGER NOT NULL,
  measure TEXT NOT NULL,
  step INTEGER NOT NULL CHECK (step IN (0, 3600, 86400)),
  at REAL NOT NULL,
  label TEXT NOT NULL,
  value REAL NOT NULL,
  PRIMARY KEY (source_id, measure, step, at, label)
) STRICT, WITHOUT ROWID;

-- The histograms of each run.
CREATE TABLE run_rollup (
  run_id INTEGER NOT NULL,
  measure TEXT NOT NULL,
  label TEXT NOT NULL,
  value REAL NOT NULL,
  PRIMARY KEY (run_id, measure, label)
) STRICT, WITHOUT ROWID;

-- What the attempts of a run have measured in one turn, until it is summed: a JSON array of [measure, label, amount].
CREATE TABLE measured (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  run_id INTEGER NOT NULL,
  at REAL NOT NULL,
  amounts TEXT NOT NULL
) STRICT;

-- Attempts whose start is summed and whose end is not.
CREATE TABLE open_attempt (
  job_id INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  at REAL NOT NULL,
  PRIMARY KEY (job_id, attempt)
) STRICT, WITHOUT ROWID;

-- How far the journal is summed: all lines up to this one, but those in `holes`, which were not to be seen yet. It moves
-- in the transaction that writes the sums; `version` counts these.
CREATE TABLE rollup_position (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  version INTEGER NOT NULL,
  line INTEGER NOT NULL,
  holes TEXT NOT NULL,
  at REAL NOT NULL
) STRICT;
