-- expands

-- Which environment this database is of, written when it is first used; and the release that the environment runs.
ALTER TABLE project ADD COLUMN environment TEXT;
ALTER TABLE project ADD COLUMN release_id TEXT;

-- What environments run. The id is the hash of the manifest, which names each of its contents by its hash.
CREATE TABLE release (
  id TEXT PRIMARY KEY,
  manifest TEXT NOT NULL,
  created_at REAL NOT NULL,
  actor TEXT NOT NULL,
  reason TEXT NOT NULL,
  -- Where it was made.
  environment TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Files, configurations and schemas, as text where they are text and as base64 otherwise.
CREATE TABLE release_content (
  hash TEXT PRIMARY KEY,
  encoding TEXT NOT NULL CHECK (encoding IN ('utf-8', 'base64')),
  content TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- How releases came into this environment: what was done, and which release it ran before.
CREATE TABLE release_act (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  verb TEXT NOT NULL CHECK (verb IN ('create', 'promote', 'rollback')),
  release_id TEXT NOT NULL,
  before_id TEXT,
  from_environment TEXT,
  at REAL NOT NULL,
  actor TEXT NOT NULL,
  reason TEXT NOT NULL,
  -- Who had approved it: JSON.
  approvals TEXT NOT NULL DEFAULT '[]'
) STRICT;

-- Who approves a release for this environment; spent by the promotion that needs them.
CREATE TABLE release_approval (
  release_id TEXT NOT NULL,
  actor TEXT NOT NULL,
  at REAL NOT NULL,
  reason TEXT NOT NULL,
  PRIMARY KEY (release_id, actor)
) STRICT, WITHOUT ROWID;
