-- expands

-- How often a run that had ended was opened again: its attempts, beyond the first.
ALTER TABLE run ADD COLUMN reopened INTEGER NOT NULL DEFAULT 0;

-- What clients of the SQL interface see of a source, as penstock.yaml says it.
CREATE TABLE sql_source (
  source_id INTEGER PRIMARY KEY,
  job_type TEXT NOT NULL,
  site_url TEXT NOT NULL,
  organization_id TEXT NOT NULL,
  organization_name TEXT NOT NULL,
  domain TEXT NOT NULL,
  is_private INTEGER NOT NULL
) STRICT;

CREATE INDEX sql_source_domain ON sql_source (domain);
CREATE INDEX sql_source_organization ON sql_source (organization_id);

-- Roles that see some organizations only. A file has no roles: the table is here for what a copy brings.
CREATE TABLE sql_access (
  role TEXT NOT NULL,
  organization_id TEXT NOT NULL,
  PRIMARY KEY (role, organization_id)
) STRICT, WITHOUT ROWID;

-- Acts that clients of the SQL interface have asked for. Whoever leads performs each by the verb that the command line
-- uses; `taken` is one that a leader has begun. `run_id` is the run that it is about or, for runs.start, that it started.
CREATE TABLE inbox (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  verb TEXT NOT NULL CHECK (verb IN (
    'runs.start', 'runs.begin', 'runs.pause', 'runs.resume', 'runs.retry', 'runs.cancel',
    'sources.hold', 'sources.unhold', 'sources.pause', 'sources.resume', 'records.edit')),
  state TEXT NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'blocked', 'taken', 'done', 'refused', 'cancelled')),
  source_id INTEGER NOT NULL,
  run_id INTEGER,
  key TEXT,
  params TEXT NOT NULL DEFAULT '{}',
  at REAL NOT NULL,
  due_at REAL,
  actor TEXT NOT NULL,
  reason TEXT NOT NULL DEFAULT '',
  ended_at REAL,
  error TEXT NOT NULL DEFAULT '',
  CHECK ((state IN ('done', 'refused', 'cancelled')) = (ended_at IS NOT NULL))
) STRICT;

CREATE INDEX inbox_open ON inbox (id) WHERE state IN ('open', 'blocked', 'taken');
CREATE INDEX inbox_run ON inbox (run_id, id) WHERE run_id IS NOT NULL;
CREATE INDEX inbox_source ON inbox (source_id, id);
CREATE UNIQUE INDEX inbox_key ON inbox (source_id, key) WHERE key IS NOT NULL;
CREATE INDEX inbox_ended ON inbox (ended_at) WHERE ended_at IS NOT NULL;

-- What SQL clients did is what people did, too.
CREATE INDEX event_of_sql ON event (id) WHERE origin = 'sql';
