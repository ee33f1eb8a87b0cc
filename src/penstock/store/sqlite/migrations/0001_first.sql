-- expands
-- Times are UTC in seconds since the epoch. JSON is text. Counters are kept in the transaction that moves the rows they count.

CREATE TABLE source (
  id INTEGER PRIMARY KEY,
  key TEXT NOT NULL UNIQUE,
  paused_at REAL,
  pause_reason TEXT NOT NULL DEFAULT '',
  cooldown_until REAL NOT NULL DEFAULT 0,
  cooldown_reason TEXT NOT NULL DEFAULT '',
  created_at REAL NOT NULL
) STRICT;

CREATE TABLE run (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  source_id INTEGER NOT NULL REFERENCES source (id),
  kind TEXT NOT NULL CHECK (kind IN ('full', 'incremental', 'backfill', 'replay', 'probe', 'stream')),
  state TEXT NOT NULL CHECK (state IN ('draft', 'queued', 'running', 'paused', 'completed', 'partial', 'failed', 'cancelled')),
  key TEXT NOT NULL,
  plan TEXT NOT NULL,
  pipeline_version TEXT NOT NULL,
  actor TEXT NOT NULL,
  reason TEXT NOT NULL DEFAULT '',
  created_at REAL NOT NULL,
  started_at REAL,
  finished_at REAL,
  swept_at REAL,
  first_event_id INTEGER NOT NULL DEFAULT 0,
  inserted INTEGER NOT NULL DEFAULT 0,
  updated INTEGER NOT NULL DEFAULT 0,
  unchanged INTEGER NOT NULL DEFAULT 0,
  rejected INTEGER NOT NULL DEFAULT 0,
  retried INTEGER NOT NULL DEFAULT 0,
  throttled INTEGER NOT NULL DEFAULT 0,
  UNIQUE (source_id, key),
  CHECK ((state IN ('completed', 'partial', 'failed', 'cancelled')) = (finished_at IS NOT NULL))
) STRICT;

CREATE INDEX run_active ON run (source_id) WHERE state IN ('queued', 'running', 'paused');

CREATE INDEX run_unswept ON run (id) WHERE state = 'cancelled' AND swept_at IS NULL;

CREATE TABLE run_stage (
  run_id INTEGER NOT NULL REFERENCES run (id),
  stage TEXT NOT NULL,
  unit TEXT NOT NULL CHECK (unit IN ('run', 'page', 'candidate')),
  priority INTEGER NOT NULL,
  cpu REAL NOT NULL DEFAULT 0,
  memory_mb REAL NOT NULL DEFAULT 0,
  queued INTEGER NOT NULL DEFAULT 0 CHECK (queued >= 0),
  running INTEGER NOT NULL DEFAULT 0 CHECK (running >= 0),
  waiting INTEGER NOT NULL DEFAULT 0 CHECK (waiting >= 0),
  held INTEGER NOT NULL DEFAULT 0 CHECK (held >= 0),
  succeeded INTEGER NOT NULL DEFAULT 0 CHECK (succeeded >= 0),
  skipped INTEGER NOT NULL DEFAULT 0 CHECK (skipped >= 0),
  quarantined INTEGER NOT NULL DEFAULT 0 CHECK (quarantined >= 0),
  cancelled INTEGER NOT NULL DEFAULT 0 CHECK (cancelled >= 0),
  PRIMARY KEY (run_id, stage)
) STRICT, WITHOUT ROWID;

CREATE INDEX run_stage_ready ON run_stage (run_id) WHERE queued > 0;

CREATE TABLE job (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  run_id INTEGER NOT NULL,
  source_id INTEGER NOT NULL,
  stage TEXT NOT NULL,
  unit TEXT NOT NULL CHECK (unit IN ('run', 'page', 'candidate')),
  key TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('queued', 'running', 'waiting', 'held', 'succeeded', 'skipped', 'quarantined', 'cancelled')),
  rank REAL NOT NULL,
  attempt INTEGER NOT NULL DEFAULT 0,
  tries INTEGER NOT NULL DEFAULT 0,
  throttles INTEGER NOT NULL DEFAULT 0,
  deaths INTEGER NOT NULL DEFAULT 0,
  is_resumed INTEGER NOT NULL DEFAULT 0,
  worker TEXT,
  at REAL NOT NULL,
  due_at REAL,
  UNIQUE (run_id, stage, key),
  CHECK ((state = 'running') = (worker IS NOT NULL)),
  CHECK ((state = 'waiting') = (due_at IS NOT NULL))
) STRICT;

CREATE INDEX job_ready ON job (run_id, stage, rank) WHERE state = 'queued';
-- Jobs under which two workers died already: few, and looked for apart.
CREATE INDEX job_suspect ON job (run_id, stage, rank) WHERE state = 'queued' AND deaths >= 2;
CREATE INDEX job_running ON job (source_id, unit) WHERE state = 'running';
CREATE INDEX job_waiting ON job (due_at) WHERE state = 'waiting';
CREATE INDEX job_held ON job (run_id) WHERE state = 'held';
CREATE INDEX job_quarantined ON job (run_id) WHERE state = 'quarantined';

-- Apart from the job: a claim or settle rewrites the job's row, and must not rewrite its payload.
CREATE TABLE job_item (
  job_id INTEGER PRIMARY KEY,
  parent_id INTEGER,
  item TEXT NOT NULL
) STRICT;

CREATE TABLE job_failure (
  job_id INTEGER PRIMARY KEY,
  attempt INTEGER NOT NULL,
  kind TEXT NOT NULL,
  error TEXT NOT NULL,
  traceback TEXT NOT NULL,
  at REAL NOT NULL
) STRICT;

CREATE TABLE worker (
  id TEXT PRIMARY KEY,
  host TEXT NOT NULL,
  pid INTEGER NOT NULL,
  version TEXT NOT NULL,
  started_at REAL NOT NULL,
  lease_expires_at REAL NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE event (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  at REAL NOT NULL,
  kind TEXT NOT NULL,
  source_id INTEGER,
  run_id INTEGER,
  job_id INTEGER,
  attempt INTEGER,
  actor TEXT NOT NULL DEFAULT '',
  detail TEXT NOT NULL DEFAULT ''
) STRICT;

CREATE TABLE record (
  id INTEGER PRIMARY KEY,
  collection TEXT NOT NULL,
  key TEXT NOT NULL,
  version INTEGER NOT NULL,
  data TEXT NOT NULL,
  score REAL,
  source_id INTEGER NOT NULL,
  run_id INTEGER NOT NULL,
  snapshot_id INTEGER,
  pipeline_version TEXT NOT NULL,
  updated_at REAL NOT NULL,
  UNIQUE (collection, key)
) STRICT;

-- How many records each collection has, kept in the transaction that adds them.
CREATE TABLE collection (
  name TEXT PRIMARY KEY,
  records INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Earlier versions only: the present one is the record itself.
CREATE TABLE record_version (
  record_id INTEGER NOT NULL,
  version INTEGER NOT NULL,
  data TEXT NOT NULL,
  score REAL,
  source_id INTEGER NOT NULL,
  run_id INTEGER NOT NULL,
  snapshot_id INTEGER,
  pipeline_version TEXT NOT NULL,
  updated_at REAL NOT NULL,
  superseded_at REAL NOT NULL,
  PRIMARY KEY (record_id, version)
) STRICT;

CREATE TABLE checkpoint (
  source_id INTEGER NOT NULL,
  partition TEXT NOT NULL,
  cursor TEXT NOT NULL,
  run_id INTEGER NOT NULL,
  at REAL NOT NULL,
  PRIMARY KEY (source_id, partition)
) STRICT, WITHOUT ROWID;

CREATE TABLE signal (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  data TEXT NOT NULL,
  source_id INTEGER NOT NULL,
  run_id INTEGER NOT NULL,
  at REAL NOT NULL
) STRICT;

CREATE TABLE host (
  host TEXT PRIMARY KEY,
  closed_until REAL NOT NULL,
  reason TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE payload (
  hash TEXT PRIMARY KEY,
  segment TEXT NOT NULL,
  offset INTEGER NOT NULL,
  length INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX payload_segment ON payload (segment);

CREATE TABLE snapshot (
  id INTEGER PRIMARY KEY,
  job_id INTEGER NOT NULL,
  run_id INTEGER NOT NULL,
  url TEXT NOT NULL,
  hash TEXT NOT NULL,
  status INTEGER NOT NULL,
  headers TEXT NOT NULL,
  fetched_at REAL NOT NULL
) STRICT;

CREATE INDEX snapshot_job ON snapshot (job_id);
CREATE INDEX snapshot_url ON snapshot (url, id);
CREATE INDEX snapshot_hash ON snapshot (hash);
