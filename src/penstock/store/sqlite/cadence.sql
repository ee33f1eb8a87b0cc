-- name: cadences
SELECT json_group_array(json_object(
  'source_id', source_id, 'source', key, 'level', class, 'before', before, 'proposed', proposed, 'reason', reason,
  'steps', steps, 'last_run_id', last_run_id, 'since', since))
FROM (
  SELECT c.*, s.key FROM cadence AS c CROSS JOIN source AS s ON s.id = c.source_id
  WHERE :source_id IS NULL OR c.source_id = :source_id ORDER BY s.key
);

-- name: begin_cadences
-- What a source was like before it became automatic moves nothing: its runs are looked at from the next one on.
INSERT INTO cadence (source_id, class, last_run_id, since)
SELECT value ->> 0, value ->> 1, coalesce((SELECT max(r.id) FROM run AS r WHERE r.source_id = value ->> 0), 0), :now
FROM jsonb_each(:cadences) WHERE true
ON CONFLICT (source_id) DO NOTHING;

-- name: set_cadence_if
-- Only if it is still what it was when it was looked at.
UPDATE cadence
SET class = :level, before = :before, proposed = :proposed, reason = :reason, steps = :steps, last_run_id = :last_run_id,
  since = iif(class = :level, since, :now)
WHERE source_id = :source_id AND class = :was;

-- name: runs_for_cadence
-- Not of those that only go on with the rest of another: what they bring says nothing of the source.
SELECT json_group_array(json_array(source_id, id, kind, state, changed, seen)) FROM (
  SELECT r.source_id, r.id, r.kind, r.state, r.inserted + r.updated AS changed,
    r.inserted + r.updated + r.unchanged + r.pages_unchanged AS seen
  FROM jsonb_each(:places) AS p CROSS JOIN run AS r ON r.source_id = p.value ->> 0 AND r.id > p.value ->> 1
  WHERE r.kind IN ('full', 'incremental', 'probe') AND r.options ->> 'continues' IS NULL ORDER BY r.id LIMIT :limit
);
