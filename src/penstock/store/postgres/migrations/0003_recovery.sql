-- expands
-- locks: source, run, tally, job, job_item, job_failure, checkpoint and record_version, for a moment; record, until its
-- new index is built

-- Maintenance: while a row stands here, nothing of its scope starts. '' is the whole project, else a source's key.
CREATE TABLE penstock.hold (
  scope text COLLATE "C" PRIMARY KEY,
  at double precision NOT NULL,
  actor text NOT NULL,
  reason text NOT NULL DEFAULT ''
);

-- How a source's last runs ended. A degraded one runs probes only, until enough of them went well.
-- Beside the source and not in it: it is written under the lock of a run, and a source is locked before its runs.
CREATE TABLE penstock.health (
  source_id bigint PRIMARY KEY,
  bad_runs bigint NOT NULL DEFAULT 0,
  bad_run_id bigint,
  good_probes bigint NOT NULL DEFAULT 0,
  degraded_at double precision,
  degraded_reason text NOT NULL DEFAULT ''
);

-- What a probe has seen so far; its verdict is made of it.
CREATE TABLE penstock.probe (
  run_id bigint PRIMARY KEY,
  would_save bigint NOT NULL DEFAULT 0,
  rejected bigint NOT NULL DEFAULT 0,
  throttled bigint NOT NULL DEFAULT 0,
  slow bigint NOT NULL DEFAULT 0
);

-- How many jobs at once the source bears at present; NULL is what the configuration allows.
ALTER TABLE penstock.source ADD COLUMN level double precision;

-- What a kind of run needs to know beyond its plan (JSON), the run it was made from, and why it ended as it did.
ALTER TABLE penstock.run ADD COLUMN options text NOT NULL DEFAULT '{}';
ALTER TABLE penstock.run ADD COLUMN of_run_id bigint;
ALTER TABLE penstock.run ADD COLUMN end_reason text NOT NULL DEFAULT '';
-- Whether the run's sums are kept: not for one that older code has begun, or may have had a hand in.
ALTER TABLE penstock.run ADD COLUMN is_accounted boolean NOT NULL DEFAULT false;
ALTER TABLE penstock.run ADD COLUMN candidates_accepted bigint NOT NULL DEFAULT 0;
ALTER TABLE penstock.run ADD COLUMN candidates_rejected bigint NOT NULL DEFAULT 0;
ALTER TABLE penstock.run ADD COLUMN candidates_duplicate bigint NOT NULL DEFAULT 0;
ALTER TABLE penstock.run ADD COLUMN candidates_passed bigint NOT NULL DEFAULT 0;
ALTER TABLE penstock.run ADD COLUMN candidates_dropped bigint NOT NULL DEFAULT 0;
ALTER TABLE penstock.run ADD COLUMN pages_unchanged bigint NOT NULL DEFAULT 0;
ALTER TABLE penstock.run ADD COLUMN disallowed bigint NOT NULL DEFAULT 0;
ALTER TABLE penstock.run ADD COLUMN requests bigint NOT NULL DEFAULT 0;
ALTER TABLE penstock.run ADD COLUMN bytes bigint NOT NULL DEFAULT 0;
ALTER TABLE penstock.run ADD COLUMN seconds double precision NOT NULL DEFAULT 0;
ALTER TABLE penstock.run ADD COLUMN money double precision NOT NULL DEFAULT 0;
-- How many jobs were ever enqueued, counted apart from the states that they are in: the left side of the sums.
ALTER TABLE penstock.run ADD COLUMN pages_added bigint NOT NULL DEFAULT 0;
ALTER TABLE penstock.run ADD COLUMN candidates_added bigint NOT NULL DEFAULT 0;

ALTER TABLE penstock.tally ADD COLUMN candidates_accepted bigint NOT NULL DEFAULT 0;
ALTER TABLE penstock.tally ADD COLUMN candidates_rejected bigint NOT NULL DEFAULT 0;
ALTER TABLE penstock.tally ADD COLUMN candidates_duplicate bigint NOT NULL DEFAULT 0;
ALTER TABLE penstock.tally ADD COLUMN candidates_passed bigint NOT NULL DEFAULT 0;
ALTER TABLE penstock.tally ADD COLUMN candidates_dropped bigint NOT NULL DEFAULT 0;
ALTER TABLE penstock.tally ADD COLUMN pages_unchanged bigint NOT NULL DEFAULT 0;
ALTER TABLE penstock.tally ADD COLUMN disallowed bigint NOT NULL DEFAULT 0;
ALTER TABLE penstock.tally ADD COLUMN requests bigint NOT NULL DEFAULT 0;
ALTER TABLE penstock.tally ADD COLUMN bytes bigint NOT NULL DEFAULT 0;
ALTER TABLE penstock.tally ADD COLUMN seconds double precision NOT NULL DEFAULT 0;
ALTER TABLE penstock.tally ADD COLUMN money double precision NOT NULL DEFAULT 0;
ALTER TABLE penstock.tally ADD COLUMN pages_added bigint NOT NULL DEFAULT 0;
ALTER TABLE penstock.tally ADD COLUMN candidates_added bigint NOT NULL DEFAULT 0;

CREATE INDEX run_of ON penstock.run (of_run_id) WHERE of_run_id IS NOT NULL;

-- Where a job that is held returns to.
ALTER TABLE penstock.job ADD COLUMN returns_to text;
ALTER TABLE penstock.job ADD COLUMN returns_due_at double precision;

-- The page that a job's item came from: what is saved by a candidate still knows its page.
ALTER TABLE penstock.job_item ADD COLUMN snapshot_id bigint;

-- A quarantined job's entry: how often it came here, why, and what people wrote about it.
ALTER TABLE penstock.job_failure ADD COLUMN cause text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE penstock.job_failure ADD COLUMN quarantines bigint NOT NULL DEFAULT 0;
ALTER TABLE penstock.job_failure ADD COLUMN first_at double precision;
ALTER TABLE penstock.job_failure ADD COLUMN escalated_at double precision;
ALTER TABLE penstock.job_failure ADD COLUMN notes text NOT NULL DEFAULT '[]';

-- What failed for the same reason again and again; once escalated, it is not tried again by itself.
CREATE TABLE penstock.cause (
  source_id bigint NOT NULL,
  cause text COLLATE "C" NOT NULL,
  pipeline_version text NOT NULL,
  failures bigint NOT NULL,
  first_at double precision NOT NULL,
  last_at double precision NOT NULL,
  escalated_at double precision,
  -- How many pages of the run had succeeded at its last failure, where one that succeeds disproves it; else -1.
  succeeded bigint NOT NULL DEFAULT -1,
  PRIMARY KEY (source_id, cause)
);

-- What was judged and not wanted, with all that is needed to judge it again.
CREATE TABLE penstock.reject (
  id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
  source_id bigint NOT NULL,
  run_id bigint NOT NULL,
  job_id bigint NOT NULL,
  stage text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  code text NOT NULL,
  reason text NOT NULL,
  score double precision,
  item text NOT NULL,
  snapshot_id bigint,
  at double precision NOT NULL,
  redriven_run_id bigint
);

CREATE INDEX reject_source ON penstock.reject (source_id, id);
CREATE INDEX reject_run ON penstock.reject (run_id);

-- What a replay would save; applied or dropped by a person.
-- Without data it is as the record was: NULL with 'remove' takes it away, with anything else leaves it.
CREATE TABLE penstock.staged (
  run_id bigint NOT NULL,
  collection text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  data text,
  score double precision,
  merge text NOT NULL CHECK (merge IN ('replace', 'keep', 'merge', 'remove')),
  source_id bigint NOT NULL,
  snapshot_id bigint,
  -- The version that the record had when this was staged; 0 where there was none.
  base_version bigint NOT NULL,
  at double precision NOT NULL,
  PRIMARY KEY (run_id, collection, key)
);

CREATE INDEX staged_snapshot ON penstock.staged (snapshot_id) WHERE snapshot_id IS NOT NULL;

-- What became of what a replay has staged. `sealed` is how far it was looked for what is not there any more.
CREATE TABLE penstock.replay (
  run_id bigint PRIMARY KEY,
  state text NOT NULL CHECK (state IN ('staged', 'committing', 'committed', 'dropped')),
  sealed text NOT NULL DEFAULT '{}',
  added bigint NOT NULL DEFAULT 0,
  changed bigint NOT NULL DEFAULT 0,
  removed bigint NOT NULL DEFAULT 0,
  at double precision NOT NULL
);

-- A record that a replay or an undo took away keeps its row and its versions.
ALTER TABLE penstock.record ADD COLUMN is_removed boolean NOT NULL DEFAULT false;
ALTER TABLE penstock.record_version ADD COLUMN is_removed boolean NOT NULL DEFAULT false;

CREATE INDEX record_snapshot ON penstock.record (snapshot_id) WHERE snapshot_id IS NOT NULL;

-- What is known of a page of a source: what its sitemap announced last, and in which run; and what it was when it
-- was last extracted: when that was fetched, and of how many pages it was one that were extracted together.
CREATE TABLE penstock.page (
  source_id bigint NOT NULL,
  url text COLLATE "C" NOT NULL,
  announced text NOT NULL DEFAULT '',
  announced_run_id bigint,
  done_announced text NOT NULL DEFAULT '',
  done_hash text,
  done_snapshot_id bigint,
  done_version text,
  done_run_id bigint,
  done_at double precision,
  done_parts bigint NOT NULL DEFAULT 1,
  at double precision NOT NULL,
  PRIMARY KEY (source_id, url)
);

-- Where the redirects ended; '' is where it was asked for.
ALTER TABLE penstock.snapshot ADD COLUMN final_url text NOT NULL DEFAULT '';

ALTER TABLE penstock.checkpoint ADD COLUMN last_offset text NOT NULL DEFAULT 'null';
ALTER TABLE penstock.checkpoint ADD COLUMN moves bigint NOT NULL DEFAULT 0;

-- What became of a checkpoint, numbered from 1: the newest moves of each, so that a stream can't fill the disk.
CREATE TABLE penstock.checkpoint_move (
  source_id bigint NOT NULL,
  partition text COLLATE "C" NOT NULL,
  number bigint NOT NULL,
  cursor text NOT NULL,
  last_offset text NOT NULL,
  run_id bigint NOT NULL,
  at double precision NOT NULL,
  actor text NOT NULL,
  act text NOT NULL CHECK (act IN ('moved', 'refused', 'rewound')),
  reason text NOT NULL DEFAULT '',
  PRIMARY KEY (source_id, partition, number)
);

CREATE INDEX checkpoint_move_at ON penstock.checkpoint_move (at);

-- The cursors of a run that must not move those of its source: a backfill's.
CREATE TABLE penstock.run_cursor (
  run_id bigint NOT NULL,
  partition text COLLATE "C" NOT NULL,
  cursor text NOT NULL,
  last_offset text NOT NULL DEFAULT 'null',
  at double precision NOT NULL,
  PRIMARY KEY (run_id, partition)
);

-- Which stretches of time of which partition have been ingested.
CREATE TABLE penstock.coverage (
  source_id bigint NOT NULL,
  partition text COLLATE "C" NOT NULL,
  start_at double precision NOT NULL,
  end_at double precision NOT NULL,
  run_id bigint NOT NULL,
  at double precision NOT NULL,
  PRIMARY KEY (source_id, partition, start_at, end_at)
);

-- A circuit breaker of a source or a host; `buckets` counts what went well and what failed, by time. It left closed at
-- `opened_at`; `trying` requests to a host that is half-open are under way, until then at the latest.
CREATE TABLE penstock.breaker (
  key text COLLATE "C" PRIMARY KEY,
  state text NOT NULL CHECK (state IN ('closed', 'open', 'half-open')),
  since double precision NOT NULL,
  opens_at double precision NOT NULL DEFAULT 0,
  opened_at double precision NOT NULL DEFAULT 0,
  counts_until double precision NOT NULL DEFAULT 0,
  trips bigint NOT NULL DEFAULT 0,
  ramp bigint NOT NULL DEFAULT 0,
  trying bigint NOT NULL DEFAULT 0,
  trying_until double precision NOT NULL DEFAULT 0,
  in_a_row bigint NOT NULL DEFAULT 0,
  buckets text NOT NULL DEFAULT '[]',
  reason text NOT NULL DEFAULT ''
);

-- What of a budget is used in its present period.
CREATE TABLE penstock.budget (
  scope text COLLATE "C" NOT NULL,
  measure text COLLATE "C" NOT NULL,
  period text COLLATE "C" NOT NULL,
  period_at double precision NOT NULL,
  resets_at double precision,
  used double precision NOT NULL DEFAULT 0,
  bound double precision NOT NULL,
  warned bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (scope, measure, period)
);

-- What a worker has in its hands of something that is bounded for all of them; it goes when the worker goes.
CREATE TABLE penstock.holding (
  worker text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  amount double precision NOT NULL,
  PRIMARY KEY (key, worker)
);
