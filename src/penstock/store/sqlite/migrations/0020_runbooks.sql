-- expands

-- Every time that somebody follows a runbook: how far it has come, and how it ended. An empty target is the project.
CREATE TABLE runbook_execution (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  runbook TEXT NOT NULL,
  target TEXT NOT NULL,
  started_at REAL NOT NULL,
  actor TEXT NOT NULL,
  steps INTEGER NOT NULL DEFAULT 0,
  ended_at REAL,
  outcome TEXT NOT NULL DEFAULT ''
) STRICT;

CREATE UNIQUE INDEX runbook_execution_open ON runbook_execution (runbook, target) WHERE ended_at IS NULL;

-- What was done or skipped in one, in this order; findings are JSON.
CREATE TABLE runbook_step (
  execution_id INTEGER NOT NULL,
  number INTEGER NOT NULL,
  step TEXT NOT NULL,
  outcome TEXT NOT NULL CHECK (outcome IN ('done', 'skipped')),
  summary TEXT NOT NULL,
  findings TEXT NOT NULL,
  at REAL NOT NULL,
  actor TEXT NOT NULL,
  reason TEXT NOT NULL,
  PRIMARY KEY (execution_id, number)
) STRICT, WITHOUT ROWID;
