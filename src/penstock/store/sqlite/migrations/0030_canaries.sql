-- expands

-- A release on trial: which share of pages or sources it performs, how that is judged, and what became of it.
CREATE TABLE canary (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  release_id TEXT NOT NULL,
  share TEXT NOT NULL CHECK (share IN ('pages', 'sources')),
  percent REAL NOT NULL,
  salt TEXT NOT NULL,
  state TEXT NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'passed', 'full', 'stopping', 'stopped', 'ended')),
  -- The limits of its guardrails: JSON.
  limits TEXT NOT NULL,
  -- How many looks were taken, and the last one: JSON.
  looks INTEGER NOT NULL DEFAULT 0,
  look TEXT NOT NULL DEFAULT 'null',
  began_at REAL NOT NULL,
  ended_at REAL,
  actor TEXT NOT NULL,
  reason TEXT NOT NULL,
  end_reason TEXT NOT NULL DEFAULT '',
  CHECK ((state IN ('stopped', 'ended')) = (ended_at IS NOT NULL))
) STRICT;

CREATE INDEX canary_open ON canary (id) WHERE state IN ('active', 'passed', 'full', 'stopping');

-- The sources that it is about, with what the release would perform there: its version, and a plan for each kind of run (JSON).
CREATE TABLE canary_source (
  canary_id INTEGER NOT NULL,
  source_id INTEGER NOT NULL,
  is_in_share INTEGER NOT NULL,
  version TEXT NOT NULL,
  plans TEXT NOT NULL,
  PRIMARY KEY (canary_id, source_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX canary_source_of ON canary_source (source_id, canary_id);

-- Its runs, and those that they are compared with.
CREATE TABLE canary_run (
  canary_id INTEGER NOT NULL,
  run_id INTEGER NOT NULL,
  arm TEXT NOT NULL CHECK (arm IN ('canary', 'control')),
  PRIMARY KEY (canary_id, run_id)
) STRICT, WITHOUT ROWID;

-- What came of the jobs of these runs: JSON, with keys of records as hashes.
CREATE TABLE canary_sample (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  run_id INTEGER NOT NULL,
  job_id INTEGER NOT NULL,
  sample TEXT NOT NULL
) STRICT;

CREATE INDEX canary_sample_of_run ON canary_sample (run_id, id);
CREATE INDEX canary_sample_of_job ON canary_sample (job_id);
