-- expands

-- What steps print and log, a line each, with the attempt that it comes from.
CREATE TABLE log_line (
  id INTEGER PRIMARY KEY,
  at REAL NOT NULL,
  source_id INTEGER NOT NULL,
  run_id INTEGER NOT NULL,
  job_id INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  level TEXT NOT NULL,
  text TEXT NOT NULL
) STRICT;

CREATE INDEX log_line_run ON log_line (run_id, id);
CREATE INDEX log_line_job ON log_line (job_id, id);
