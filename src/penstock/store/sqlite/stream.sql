-- name: beat_stream_if_running
-- Beside the cursors of its run: until when the stream was known to be alive.
INSERT INTO run_cursor (run_id, partition, cursor, at)
SELECT job.run_id, '~alive', 'null', :now FROM job
WHERE job.id = :id AND job.attempt = :attempt AND job.state = 'running' AND job.worker = :worker
ON CONFLICT (run_id, partition) DO UPDATE SET at = excluded.at;

-- name: running_streams
SELECT coalesce(sum(g.running), 0) FROM run AS r JOIN run_stage AS g ON g.run_id = r.id
WHERE r.state IN ('queued', 'running', 'paused') AND r.kind = 'stream' AND g.unit = 'run';
