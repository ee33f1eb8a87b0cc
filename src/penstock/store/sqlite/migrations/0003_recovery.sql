-- expands

-- Maintenance: while a row stands here, nothing of its scope starts. '' is the whole project, else a source's key.
CREATE TABLE hold (
  scope TEXT PRIMARY KEY,
  at REAL NOT NULL,
  actor TEXT NOT NULL,
  reason TEXT NOT NULL DEFAULT ''
) STRICT, WITHOUT ROWID;

-- How a source's last runs ended. A degraded one runs probes only, until enough of them went well.
-- Beside the source and not in it: it is written under the lock of a run, and a source is locked before its runs.
CREATE TABLE health (
  source_id INTEGER PRIMARY KEY,
  bad_runs INTEGER NOT NULL DEFAULT 0,
  bad_run_id INTEGER,
  good_probes INTEGER NOT NULL DEFAULT 0,
  degraded_at REAL,
  degraded_reason TEXT NOT NULL DEFAULT ''
) STRICT;

-- What a probe has seen so far; its verdict is made of it.
CREATE TABLE probe (
  run_id INTEGER PRIMARY KEY,
  would_save INTEGER NOT NULL DEFAULT 0,
  rejected INTEGER NOT NULL DEFAULT 0,
  throttled INTEGER NOT NULL DEFAULT 0,
  slow INTEGER NOT NULL DEFAULT 0
) STRICT;

-- How many jobs at once the source bears at present; NULL is what the configuration allows.
ALTER TABLE source ADD COLUMN level REAL;

-- What a kind of run needs to know beyond its plan (JSON), the run it was made from, and why it ended as it did.
ALTER TABLE run ADD COLUMN options TEXT NOT NULL DEFAULT '{}';
ALTER TABLE run ADD COLUMN of_run_id INTEGER;
ALTER TABLE run ADD COLUMN end_reason TEXT NOT NULL DEFAULT '';
-- Whether the run's sums are kept: not for one that older code has begun, or may have had a hand in.
ALTER TABLE run ADD COLUMN is_accounted INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN candidates_accepted INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN candidates_rejected INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN candidates_duplicate INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN candidates_passed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN candidates_dropped INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN pages_unchanged INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN disallowed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN requests INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN seconds REAL NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN money REAL NOT NULL DEFAULT 0;
-- How many jobs were ever enqueued, counted apart from the states that they are in: the left side of the sums.
ALTER TABLE run ADD COLUMN pages_added INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN candidates_added INTEGER NOT NULL DEFAULT 0;

CREATE INDEX run_of ON run (of_run_id) WHERE of_run_id IS NOT NULL;

-- With the run: what is running is counted by what kind of run it belongs to.
DROP INDEX job_running;
CREATE INDEX job_running ON job (source_id, unit, run_id) WHERE state = 'running';

-- Where a job that is held returns to.
ALTER TABLE job ADD COLUMN returns_to TEXT;
ALTER TABLE job ADD COLUMN returns_due_at REAL;

-- The page that a job's item came from: what is saved by a candidate still knows its page.
ALTER TABLE job_item ADD COLUMN snapshot_id INTEGER;

-- A quarantined job's entry: how often it came here, why, and what people wrote about it.
ALTER TABLE job_failure ADD COLUMN cause TEXT NOT NULL DEFAULT '';
ALTER TABLE job_failure ADD COLUMN quarantines INTEGER NOT NULL DEFAULT 0;
ALTER TABLE job_failure ADD COLUMN first_at REAL;
ALTER TABLE job_failure ADD COLUMN escalated_at REAL;
ALTER TABLE job_failure ADD COLUMN notes TEXT NOT NULL DEFAULT '[]';

-- What failed for the same reason again and again; once escalated, it is not tried again by itself.
CREATE TABLE cause (
  source_id INTEGER NOT NULL,
  cause TEXT NOT NULL,
  pipeline_version TEXT NOT NULL,
  failures INTEGER NOT NULL,
  first_at REAL NOT NULL,
  last_at REAL NOT NULL,
  escalated_at REAL,
  -- How many pages of the run had succeeded at its last failure, where one that succeeds disproves it; else -1.
  succeeded INTEGER NOT NULL DEFAULT -1,
  PRIMARY KEY (source_id, cause)
) STRICT, WITHOUT ROWID;

-- What was judged and not wanted, with all that is needed to judge it again.
CREATE TABLE reject (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  source_id INTEGER NOT NULL,
  run_id INTEGER NOT NULL,
  job_id INTEGER NOT NULL,
  stage TEXT NOT NULL,
  key TEXT NOT NULL,
  code TEXT NOT NULL,
  reason TEXT NOT NULL,
  score REAL,
  item TEXT NOT NULL,
  snapshot_id INTEGER,
  at REAL NOT NULL,
  redriven_run_id INTEGER
) STRICT;

CREATE INDEX reject_source ON reject (source_id, id);
CREATE INDEX reject_run ON reject (run_id);

-- What a replay would save; applied or dropped by a person.
-- Without data it is as the record was: NULL with 'remove' takes it away, with anything else leaves it.
CREATE TABLE staged (
  run_id INTEGER NOT NULL,
  collection TEXT NOT NULL,
  key TEXT NOT NULL,
  data TEXT,
  score REAL,
  merge TEXT NOT NULL CHECK (merge IN ('replace', 'keep', 'merge', 'remove')),
  source_id INTEGER NOT NULL,
  snapshot_id INTEGER,
  -- The version that the record had when this was staged; 0 where there was none.
  base_version INTEGER NOT NULL,
  at REAL NOT NULL,
  PRIMARY KEY (run_id, collection, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX staged_snapshot ON staged (snapshot_id) WHERE snapshot_id IS NOT NULL;

-- What became of what a replay has staged. `sealed` is how far it was looked for what is not there any more.
CREATE TABLE replay (
  run_id INTEGER PRIMARY KEY,
  state TEXT NOT NULL CHECK (state IN ('staged', 'committing', 'committed', 'dropped')),
  sealed TEXT NOT NULL DEFAULT '{}',
  added INTEGER NOT NULL DEFAULT 0,
  changed INTEGER NOT NULL DEFAULT 0,
  removed INTEGER NOT NULL DEFAULT 0,
  at REAL NOT NULL
) STRICT;

-- A record that a replay or an undo took away keeps its row and its versions.
ALTER TABLE record ADD COLUMN is_removed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE record_version ADD COLUMN is_removed INTEGER NOT NULL DEFAULT 0;

CREATE INDEX record_snapshot ON record (snapshot_id) WHERE snapshot_id IS NOT NULL;

-- What is known of a page of a source: what its sitemap announced last, and in which run; and what it was when it
-- was last extracted: when that was fetched, and of how many pages it was one that were extracted together.
CREATE TABLE page (
  source_id INTEGER NOT NULL,
  url TEXT NOT NULL,
  announced TEXT NOT NULL DEFAULT '',
  announced_run_id INTEGER,
  done_announced TEXT NOT NULL DEFAULT '',
  done_hash TEXT,
  done_snapshot_id INTEGER,
  done_version TEXT,
  done_run_id INTEGER,
  done_at REAL,
  done_parts INTEGER NOT NULL DEFAULT 1,
  at REAL NOT NULL,
  PRIMARY KEY (source_id, url)
) STRICT, WITHOUT ROWID;

-- Where the redirects ended; '' is where it was asked for.
ALTER TABLE snapshot ADD COLUMN final_url TEXT NOT NULL DEFAULT '';

ALTER TABLE checkpoint ADD COLUMN last_offset TEXT NOT NULL DEFAULT 'null';
ALTER TABLE checkpoint ADD COLUMN moves INTEGER NOT NULL DEFAULT 0;

-- What became of a checkpoint, numbered from 1: the newest moves of each, so that a stream can't fill the disk.
CREATE TABLE checkpoint_move (
  source_id INTEGER NOT NULL,
  partition TEXT NOT NULL,
  number INTEGER NOT NULL,
  cursor TEXT NOT NULL,
  last_offset TEXT NOT NULL,
  run_id INTEGER NOT NULL,
  at REAL NOT NULL,
  actor TEXT NOT NULL,
  act TEXT NOT NULL CHECK (act IN ('moved', 'refused', 'rewound')),
  reason TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (source_id, partition, number)
) STRICT, WITHOUT ROWID;

CREATE INDEX checkpoint_move_at ON checkpoint_move (at);

-- The cursors of a run that must not move those of its source: a backfill's.
CREATE TABLE run_cursor (
  run_id INTEGER NOT NULL,
  partition TEXT NOT NULL,
  cursor TEXT NOT NULL,
  last_offset TEXT NOT NULL DEFAULT 'null',
  at REAL NOT NULL,
  PRIMARY KEY (run_id, partition)
) STRICT, WITHOUT ROWID;

-- Which stretches of time of which partition have been ingested.
CREATE TABLE coverage (
  source_id INTEGER NOT NULL,
  partition TEXT NOT NULL,
  start_at REAL NOT NULL,
  end_at REAL NOT NULL,
  run_id INTEGER NOT NULL,
  at REAL NOT NULL,
  PRIMARY KEY (source_id, partition, start_at, end_at)
) STRICT, WITHOUT ROWID;

-- A circuit breaker of a source or a host; `buckets` counts what went well and what failed, by time. It left closed at
-- `opened_at`; `trying` requests to a host that is half-open are under way, until then at the latest.
CREATE TABLE breaker (
  key TEXT PRIMARY KEY,
  state TEXT NOT NULL CHECK (state IN ('closed', 'open', 'half-open')),
  since REAL NOT NULL,
  opens_at REAL NOT NULL DEFAULT 0,
  opened_at REAL NOT NULL DEFAULT 0,
  counts_until REAL NOT NULL DEFAULT 0,
  trips INTEGER NOT NULL DEFAULT 0,
  ramp INTEGER NOT NULL DEFAULT 0,
  trying INTEGER NOT NULL DEFAULT 0,
  trying_until REAL NOT NULL DEFAULT 0,
  in_a_row INTEGER NOT NULL DEFAULT 0,
  buckets TEXT NOT NULL DEFAULT '[]',
  reason TEXT NOT NULL DEFAULT ''
) STRICT, WITHOUT ROWID;

-- What of a budget is used in its present period.
CREATE TABLE budget (
  scope TEXT NOT NULL,
  measure TEXT NOT NULL,
  period TEXT NOT NULL,
  period_at REAL NOT NULL,
  resets_at REAL,
  used REAL NOT NULL DEFAULT 0,
  bound REAL NOT NULL,
  warned INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (scope, measure, period)
) STRICT, WITHOUT ROWID;

-- What a worker has in its hands of something that is bounded for all of them; it goes when the worker goes.
CREATE TABLE holding (
  worker TEXT NOT NULL,
  key TEXT NOT NULL,
  amount REAL NOT NULL,
  PRIMARY KEY (key, worker)
) STRICT, WITHOUT ROWID;
