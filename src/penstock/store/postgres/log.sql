-- name: add_log_lines
INSERT INTO penstock.log_line (at, source_id, run_id, job_id, attempt, level, text)
SELECT (v ->> 0)::double precision, (v ->> 1)::bigint, (v ->> 2)::bigint, (v ->> 3)::bigint, (v ->> 4)::bigint, v ->> 5, v ->> 6
FROM jsonb_array_elements(%(lines)s::jsonb) WITH ORDINALITY AS w (v, number)
ORDER BY number;

-- name: log_lines_of_run
-- The newest of them, in their order.
SELECT coalesce(json_agg(json_build_array(
  l.id, l.at, (SELECT key FROM penstock.source AS s WHERE s.id = l.source_id), l.run_id, l.job_id, l.attempt, l.level, l.text
) ORDER BY l.id), '[]')::text
FROM (
  SELECT id, at, source_id, run_id, job_id, attempt, level, text FROM penstock.log_line
  WHERE run_id = %(run_id)s AND id > %(after_id)s AND id < coalesce(%(before_id)s::bigint, 9223372036854775807)
  ORDER BY id DESC LIMIT %(limit)s
) AS l;

-- name: log_lines_of_job
SELECT coalesce(json_agg(json_build_array(
  l.id, l.at, (SELECT key FROM penstock.source AS s WHERE s.id = l.source_id), l.run_id, l.job_id, l.attempt, l.level, l.text
) ORDER BY l.id), '[]')::text
FROM (
  SELECT id, at, source_id, run_id, job_id, attempt, level, text FROM penstock.log_line
  WHERE job_id = %(job_id)s AND id > %(after_id)s AND id < coalesce(%(before_id)s::bigint, 9223372036854775807)
  ORDER BY id DESC LIMIT %(limit)s
) AS l;
