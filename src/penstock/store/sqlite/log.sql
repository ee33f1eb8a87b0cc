-- name: add_log_lines
INSERT INTO log_line (at, source_id, run_id, job_id, attempt, level, text)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6
FROM jsonb_each(:lines);

-- name: log_lines_of_run
-- The newest of them, in their order.
SELECT json_group_array(json_array(
  l.id, l.at, (SELECT key FROM source AS s WHERE s.id = l.source_id), l.run_id, l.job_id, l.attempt, l.level, l.text
) ORDER BY l.id)
FROM (
  SELECT * FROM log_line
  WHERE run_id = :run_id AND id > :after_id AND id < coalesce(:before_id, 9223372036854775807)
  ORDER BY id DESC LIMIT :limit
) AS l;

-- name: log_lines_of_job
SELECT json_group_array(json_array(
  l.id, l.at, (SELECT key FROM source AS s WHERE s.id = l.source_id), l.run_id, l.job_id, l.attempt, l.level, l.text
) ORDER BY l.id)
FROM (
  SELECT * FROM log_line
  WHERE job_id = :job_id AND id > :after_id AND id < coalesce(:before_id, 9223372036854775807)
  ORDER BY id DESC LIMIT :limit
) AS l;
