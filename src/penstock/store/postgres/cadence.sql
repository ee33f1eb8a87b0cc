-- name: cadences
SELECT coalesce(json_agg(json_build_object(
  'source_id', c.source_id, 'source', s.key, 'level', c.class, 'before', c.before, 'proposed', c.proposed, 'reason', c.reason,
  'steps', c.steps, 'last_run_id', c.last_run_id, 'since', c.since) ORDER BY s.key COLLATE "C"), '[]')::text
FROM penstock.cadence AS c JOIN penstock.source AS s ON s.id = c.source_id
WHERE %(source_id)s::bigint IS NULL OR c.source_id = %(source_id)s::bigint;

-- name: begin_cadences
-- What a source was like before it became automatic moves nothing: its runs are looked at from the next one on.
INSERT INTO penstock.cadence (source_id, class, last_run_id, since)
SELECT (c ->> 0)::bigint, c ->> 1, coalesce((SELECT max(r.id) FROM penstock.run AS r WHERE r.source_id = (c ->> 0)::bigint), 0), %(now)s
FROM jsonb_array_elements(%(cadences)s::jsonb) WITH ORDINALITY AS w(c, n) ORDER BY n
ON CONFLICT (source_id) DO NOTHING;

-- name: set_cadence_if
-- Only if it is still what it was when it was looked at.
UPDATE penstock.cadence
SET class = %(level)s, before = %(before)s, proposed = %(proposed)s, reason = %(reason)s, steps = %(steps)s,
  last_run_id = %(last_run_id)s, since = CASE WHEN class = %(level)s THEN since ELSE %(now)s END
WHERE source_id = %(source_id)s AND class = %(was)s;

-- name: runs_for_cadence
-- Not of those that only go on with the rest of another: what they bring says nothing of the source. With what is in
-- tallies still: a run that has just ended has brought nothing but them.
SELECT coalesce(json_agg(json_build_array(source_id, id, kind, state, changed, seen) ORDER BY id), '[]')::text FROM (
  SELECT r.source_id, r.id, r.kind, r.state, r.inserted + r.updated + t.changed AS changed,
    r.inserted + r.updated + r.unchanged + r.pages_unchanged + t.seen AS seen
  FROM jsonb_array_elements(%(places)s::jsonb) AS p
  CROSS JOIN LATERAL (
    SELECT id, source_id, kind, state, inserted, updated, unchanged, pages_unchanged FROM penstock.run
    WHERE source_id = (p ->> 0)::bigint AND id > (p ->> 1)::bigint
      AND kind IN ('full', 'incremental', 'probe') AND options::jsonb ->> 'continues' IS NULL
    ORDER BY source_id, id LIMIT %(limit)s
  ) AS r
  CROSS JOIN LATERAL (
    SELECT coalesce(sum(inserted + updated), 0)::bigint AS changed,
      coalesce(sum(inserted + updated + unchanged + pages_unchanged), 0)::bigint AS seen
    FROM penstock.tally WHERE run_id = r.id
  ) AS t
  ORDER BY r.id LIMIT %(limit)s
) AS r;
