-- expands

-- When each source runs by itself: the definition that holds now, and where it stands.
CREATE TABLE schedule (
  source_id INTEGER NOT NULL,
  name TEXT NOT NULL,
  version INTEGER NOT NULL,
  definition TEXT NOT NULL,
  words TEXT NOT NULL,
  kind TEXT NOT NULL,
  next_due_at REAL,
  -- When it is to be looked at: when it is due, or when what keeps it from starting may be over.
  look_at REAL,
  -- The last tick that started a run, and that run; what was skipped moves neither.
  last_due_at REAL,
  last_run_id INTEGER,
  changed_at REAL NOT NULL,
  PRIMARY KEY (source_id, name)
) STRICT, WITHOUT ROWID;

CREATE INDEX schedule_due ON schedule (look_at, next_due_at) WHERE look_at IS NOT NULL;

-- How old the last good run of a source is.
CREATE INDEX run_good ON run (source_id, finished_at)
WHERE state IN ('completed', 'partial') AND kind IN ('full', 'incremental');

-- Every definition there ever was, and since when.
CREATE TABLE schedule_version (
  source_id INTEGER NOT NULL,
  name TEXT NOT NULL,
  version INTEGER NOT NULL,
  definition TEXT NOT NULL,
  words TEXT NOT NULL,
  at REAL NOT NULL,
  actor TEXT NOT NULL,
  PRIMARY KEY (source_id, name, version)
) STRICT, WITHOUT ROWID;

-- What became of each due moment; whoever writes it first decides.
CREATE TABLE tick (
  source_id INTEGER NOT NULL,
  schedule TEXT NOT NULL,
  due_at REAL NOT NULL,
  version INTEGER NOT NULL,
  outcome TEXT NOT NULL CHECK (outcome IN ('fired', 'joined', 'missed', 'skipped', 'denied')),
  run_id INTEGER,
  reason TEXT NOT NULL DEFAULT '',
  at REAL NOT NULL,
  PRIMARY KEY (source_id, schedule, due_at)
) STRICT, WITHOUT ROWID;

CREATE INDEX tick_at ON tick (at);

ALTER TABLE signal ADD COLUMN actor TEXT NOT NULL DEFAULT '';
-- Who raises a signal may name it, so that raising it twice raises it once.
ALTER TABLE signal ADD COLUMN key TEXT;

CREATE UNIQUE INDEX signal_key ON signal (name, key) WHERE key IS NOT NULL;
-- Open until whoever leads has looked who waits for it; those that are older than this schema are not.
ALTER TABLE signal ADD COLUMN is_open INTEGER NOT NULL DEFAULT 0;

CREATE INDEX signal_open ON signal (id) WHERE is_open;

-- What became of a signal for each schedule that waits for it. Of what waits for several sources, those that
-- came first join the last one.
CREATE TABLE delivery (
  signal_id INTEGER NOT NULL,
  source_id INTEGER NOT NULL,
  schedule TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('queued', 'waiting', 'joined', 'started', 'skipped')),
  run_id INTEGER,
  joins INTEGER,
  reason TEXT NOT NULL DEFAULT '',
  at REAL NOT NULL,
  PRIMARY KEY (signal_id, source_id, schedule)
) STRICT, WITHOUT ROWID;

CREATE INDEX delivery_open ON delivery (source_id, schedule, signal_id) WHERE state IN ('queued', 'waiting');

-- Files that have started a run; one that has changed since starts another.
CREATE TABLE landed (
  source_id INTEGER NOT NULL,
  schedule TEXT NOT NULL,
  path TEXT NOT NULL,
  stamp TEXT NOT NULL,
  signal_id INTEGER NOT NULL,
  at REAL NOT NULL,
  gone_at REAL,
  PRIMARY KEY (source_id, schedule, path)
) STRICT, WITHOUT ROWID;

-- Who is to be told when a run ends so: where it is sent, and what signs it, stands in penstock.yaml alone.
-- A source_id of 0 is every source.
CREATE TABLE hook (
  name TEXT NOT NULL,
  state TEXT NOT NULL,
  source_id INTEGER NOT NULL,
  PRIMARY KEY (name, state)
) STRICT, WITHOUT ROWID;

-- What the outside is to be told: until it has accepted, it is told again.
CREATE TABLE outbox (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  hook TEXT NOT NULL,
  run_id INTEGER NOT NULL,
  state TEXT NOT NULL,
  body TEXT NOT NULL,
  created_at REAL NOT NULL,
  due_at REAL,
  attempts INTEGER NOT NULL DEFAULT 0,
  delivered_at REAL,
  error TEXT NOT NULL DEFAULT '',
  UNIQUE (hook, run_id, created_at)
) STRICT;

CREATE INDEX outbox_due ON outbox (due_at) WHERE due_at IS NOT NULL;

-- The class of a source whose cadence is `auto`, and why it has it.
CREATE TABLE cadence (
  source_id INTEGER PRIMARY KEY,
  class TEXT NOT NULL,
  before TEXT NOT NULL DEFAULT '',
  proposed TEXT NOT NULL DEFAULT '',
  reason TEXT NOT NULL DEFAULT '',
  steps INTEGER NOT NULL DEFAULT 0,
  last_run_id INTEGER NOT NULL DEFAULT 0,
  since REAL NOT NULL
) STRICT;

-- A moment that a step has announced, around which a source is looked at more often.
CREATE TABLE announcement (
  source_id INTEGER NOT NULL,
  at REAL NOT NULL,
  run_id INTEGER NOT NULL,
  -- Open until whoever leads has looked whether something is due earlier for it.
  is_open INTEGER NOT NULL,
  PRIMARY KEY (source_id, at)
) STRICT, WITHOUT ROWID;

CREATE INDEX announcement_open ON announcement (source_id, at) WHERE is_open;

CREATE INDEX announcement_at ON announcement (at);

-- A promise about a source that was broken, once for each time it was.
CREATE TABLE breach (
  source_id INTEGER NOT NULL,
  rule TEXT NOT NULL,
  since REAL NOT NULL,
  run_id INTEGER,
  detail TEXT NOT NULL DEFAULT '',
  ended_at REAL,
  PRIMARY KEY (source_id, rule, since)
) STRICT, WITHOUT ROWID;

CREATE INDEX breach_open ON breach (source_id) WHERE ended_at IS NULL;

-- The last runs of a source.
CREATE INDEX run_of_source ON run (source_id, id);
