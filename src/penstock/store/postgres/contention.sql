-- Only here: SQLite has one writer at a time, and nothing to lock or to fold.

-- name: lock_lanes
SELECT id FROM penstock.source WHERE id = ANY (%(ids)s::bigint[]) ORDER BY id FOR NO KEY UPDATE;

-- name: lock_runs
-- Answers how many tallies each has that are no sums.
SELECT r.id, (
  SELECT count(*) FILTER (WHERE t.floor IS NULL) FROM penstock.tally AS t
  WHERE t.run_id = r.id AND t.id > coalesce((
    SELECT f.floor FROM penstock.tally AS f WHERE f.run_id = r.id AND f.floor IS NOT NULL ORDER BY f.id DESC LIMIT 1
  ), 0)
)
FROM (SELECT id FROM penstock.run WHERE id = ANY (%(ids)s::bigint[]) ORDER BY id FOR NO KEY UPDATE) AS r;

-- name: lock_free_lanes
-- What somebody else has locked is left to them.
SELECT id FROM penstock.source WHERE id = ANY (%(ids)s::bigint[]) ORDER BY id FOR NO KEY UPDATE SKIP LOCKED;

-- name: lock_free_runs
-- Without their tallies: what is claimed is settled, and then they are counted.
SELECT id FROM penstock.run WHERE id = ANY (%(ids)s::bigint[]) ORDER BY id FOR NO KEY UPDATE SKIP LOCKED;

-- name: committed
-- What is committed at this moment: two that are equal have nothing between them.
SELECT pg_current_snapshot()::text;

-- name: locked_runs
-- Active runs of which the row, or that of the source, is locked by somebody else just now.
WITH active AS MATERIALIZED (
  SELECT id, source_id FROM penstock.run WHERE state IN ('queued', 'running', 'paused')
), free AS MATERIALIZED (
  SELECT id FROM penstock.run WHERE id = ANY (ARRAY(SELECT id FROM active)) ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
), open AS MATERIALIZED (
  SELECT id FROM penstock.source WHERE id = ANY (ARRAY(SELECT source_id FROM active)) ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
)
SELECT id FROM active WHERE id NOT IN (SELECT id FROM free) OR source_id NOT IN (SELECT id FROM open);

-- name: jobs_of_runs
SELECT id FROM penstock.job WHERE id = ANY (%(ids)s::bigint[]) AND run_id = ANY (%(runs)s::bigint[]);

-- name: sum_up
-- Under the lock of their runs. Nothing is updated: a row with many versions that a snapshot keeps is slow to read.
-- One floor for all of them, taken before the sums get their ids: one for each would have to be joined to every line.
WITH place AS MATERIALIZED (
  SELECT f.run_id, f.floor FROM penstock.run_floor AS f WHERE f.run_id = ANY (%(ids)s::bigint[])
), gone AS (
  DELETE FROM penstock.tally WHERE ctid = ANY (ARRAY(
    SELECT t.ctid FROM place AS p
    CROSS JOIN LATERAL (SELECT ctid FROM penstock.tally WHERE run_id = p.run_id AND id > p.floor OFFSET 0) AS t
  ))
  RETURNING run_id, stage, queued, running, waiting, held, succeeded, skipped, quarantined, cancelled,
    inserted, updated, unchanged, rejected, retried, throttled,
    candidates_accepted, candidates_rejected, candidates_duplicate, candidates_passed, candidates_dropped,
    pages_unchanged, disallowed, requests, bytes, seconds, money, pages_added, candidates_added, pages_missing
), next_floor AS MATERIALIZED (
  SELECT nextval('penstock.tally_id_seq') AS floor
)
INSERT INTO penstock.tally (
  run_id, stage, floor, queued, running, waiting, held, succeeded, skipped, quarantined, cancelled,
  inserted, updated, unchanged, rejected, retried, throttled,
  candidates_accepted, candidates_rejected, candidates_duplicate, candidates_passed, candidates_dropped,
  pages_unchanged, disallowed, requests, bytes, seconds, money, pages_added, candidates_added, pages_missing
)
SELECT g.run_id, g.stage, n.floor,
  sum(g.queued), sum(g.running), sum(g.waiting), sum(g.held),
  sum(g.succeeded), sum(g.skipped), sum(g.quarantined), sum(g.cancelled),
  sum(g.inserted), sum(g.updated), sum(g.unchanged), sum(g.rejected), sum(g.retried), sum(g.throttled),
  sum(g.candidates_accepted), sum(g.candidates_rejected), sum(g.candidates_duplicate),
  sum(g.candidates_passed), sum(g.candidates_dropped), sum(g.pages_unchanged), sum(g.disallowed),
  sum(g.requests), sum(g.bytes), sum(g.seconds), sum(g.money),
  sum(g.pages_added), sum(g.candidates_added), sum(g.pages_missing)
FROM next_floor AS n CROSS JOIN gone AS g
GROUP BY g.run_id, g.stage, n.floor;

-- name: ended_with_tallies
-- From one run that has tallies to the next, not over all tallies.
WITH RECURSIVE counted(run_id) AS (
  SELECT min(run_id) FROM penstock.tally
  UNION ALL
  SELECT (SELECT min(t.run_id) FROM penstock.tally AS t WHERE t.run_id > c.run_id) FROM counted AS c WHERE c.run_id IS NOT NULL
)
SELECT r.id FROM counted AS c JOIN penstock.run AS r ON r.id = c.run_id
WHERE r.finished_at IS NOT NULL LIMIT %(limit)s;

-- name: fold
-- Under the lock of their runs. Counters can't fall below zero: what was miscounted comes to light here.
WITH gone AS (
  DELETE FROM penstock.tally AS t WHERE t.run_id = ANY (%(ids)s::bigint[])
  RETURNING run_id, stage, queued, running, waiting, held, succeeded, skipped, quarantined, cancelled,
    inserted, updated, unchanged, rejected, retried, throttled,
    candidates_accepted, candidates_rejected, candidates_duplicate, candidates_passed, candidates_dropped,
    pages_unchanged, disallowed, requests, bytes, seconds, money, pages_added, candidates_added, pages_missing
), stages AS (
  UPDATE penstock.run_stage AS g
  SET queued = g.queued + t.queued, running = g.running + t.running, waiting = g.waiting + t.waiting,
    held = g.held + t.held, succeeded = g.succeeded + t.succeeded, skipped = g.skipped + t.skipped,
    quarantined = g.quarantined + t.quarantined, cancelled = g.cancelled + t.cancelled
  FROM (
    SELECT run_id, stage, sum(queued) AS queued, sum(running) AS running, sum(waiting) AS waiting, sum(held) AS held,
      sum(succeeded) AS succeeded, sum(skipped) AS skipped, sum(quarantined) AS quarantined, sum(cancelled) AS cancelled
    FROM gone WHERE stage <> '' GROUP BY run_id, stage
  ) AS t
  WHERE g.run_id = t.run_id AND g.stage = t.stage
)
UPDATE penstock.run AS r
SET inserted = r.inserted + t.inserted, updated = r.updated + t.updated, unchanged = r.unchanged + t.unchanged,
  rejected = r.rejected + t.rejected, retried = r.retried + t.retried, throttled = r.throttled + t.throttled,
  candidates_accepted = r.candidates_accepted + t.candidates_accepted,
  candidates_rejected = r.candidates_rejected + t.candidates_rejected,
  candidates_duplicate = r.candidates_duplicate + t.candidates_duplicate,
  candidates_passed = r.candidates_passed + t.candidates_passed,
  candidates_dropped = r.candidates_dropped + t.candidates_dropped,
  pages_unchanged = r.pages_unchanged + t.pages_unchanged,
  disallowed = r.disallowed + t.disallowed,
  requests = r.requests + t.requests,
  bytes = r.bytes + t.bytes,
  seconds = r.seconds + t.seconds,
  money = r.money + t.money,
  pages_added = r.pages_added + t.pages_added,
  candidates_added = r.candidates_added + t.candidates_added,
  pages_missing = r.pages_missing + t.pages_missing
FROM (
  SELECT run_id, sum(inserted) AS inserted, sum(updated) AS updated, sum(unchanged) AS unchanged,
    sum(rejected) AS rejected, sum(retried) AS retried, sum(throttled) AS throttled,
    sum(candidates_accepted) AS candidates_accepted,
    sum(candidates_rejected) AS candidates_rejected,
    sum(candidates_duplicate) AS candidates_duplicate,
    sum(candidates_passed) AS candidates_passed,
    sum(candidates_dropped) AS candidates_dropped,
    sum(pages_unchanged) AS pages_unchanged,
    sum(disallowed) AS disallowed,
    sum(requests) AS requests,
    sum(bytes) AS bytes,
    sum(seconds) AS seconds,
    sum(money) AS money,
    sum(pages_added) AS pages_added,
    sum(candidates_added) AS candidates_added,
    sum(pages_missing) AS pages_missing
  FROM gone GROUP BY run_id
) AS t
WHERE r.id = t.run_id;

-- name: has_company
SELECT 1 FROM penstock.worker WHERE id <> %(id)s LIMIT 1;

-- name: fold_collections
WITH gone AS (
  DELETE FROM penstock.collection WHERE id IN (
    SELECT id FROM penstock.collection ORDER BY id LIMIT %(limit)s FOR UPDATE SKIP LOCKED
  ) RETURNING name, records
)
INSERT INTO penstock.collection (name, records) SELECT name, sum(records) FROM gone GROUP BY name;

-- name: new_job_ids
SELECT coalesce(json_agg(nextval('penstock.job_id_seq')), '[]')::text FROM generate_series(1, %(count)s);
