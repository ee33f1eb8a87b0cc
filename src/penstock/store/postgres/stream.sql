-- name: beat_stream_if_running
-- Beside the cursors of its run: until when the stream was known to be alive.
INSERT INTO penstock.run_cursor (run_id, partition, cursor, at)
SELECT job.run_id, '~alive', 'null', %(now)s FROM penstock.job
WHERE job.id = %(id)s AND job.attempt = %(attempt)s AND job.state || '' = 'running' AND job.worker = %(worker)s
ON CONFLICT (run_id, partition) DO UPDATE SET at = excluded.at;

-- name: running_streams
SELECT coalesce(sum(g.running), 0)::bigint FROM penstock.run AS r JOIN penstock.stage_count AS g ON g.run_id = r.id
WHERE r.state IN ('queued', 'running', 'paused') AND r.kind = 'stream' AND g.unit = 'run';
